"""Accuracy, and the accuracy loss of a low precision: as columns of a table, and in full."""

from __future__ import annotations

from typing import Any

from steptime.core.format import digits, percent
from steptime.core.record import Record

Loss = dict[str, Any]
TOP1 = "top-1 accuracy"


def columns(record: Record) -> dict[str, str]:
    """For full precision only the task's metric, if it is known."""
    loss = record.accuracy
    if not loss:
        task = _task_value(record.task).removeprefix(f"{TOP1} ")
        return {"logit error": "", "top-1 agrees": "", "task": task}
    return {
        "logit error": _relative_error(loss),
        "top-1 agrees": _share(loss["top1_agreement"]),
        "task": _task(loss).removeprefix(f"{TOP1} "),
    }


def lines(record: Record) -> dict[str, str]:
    """For a single result."""
    loss = record.accuracy
    if not loss:
        return {"task": _task_in_full(record.task)}
    return {
        "largest logit error": _errors(loss),
        "KL divergence": _divergence(loss),
        "top-1 agreement": _agreement(loss),
        "task": _task_change(loss),
        "accuracy note": disagreement_note(record),
    }


def disagreement_note(record: Record) -> str:
    if not record.accuracy_differs:
        return ""
    return "processes disagree on it: the value of the first process is shown"


def _errors(loss: Loss) -> str:
    """The largest error, and the mean unless some outputs are broken."""
    if loss["largest_logit_error"] is None:
        return _relative_error(loss)
    largest = f"{digits(loss['largest_logit_error'])} ({_relative_error(loss)})"
    if loss["kl_divergence"] is None:
        return largest
    mean = f"{digits(loss['mean_logit_error'])} ({percent(loss['mean_relative_error'])})"
    return f"{largest}, mean {mean}"


def _relative_error(loss: Loss) -> str:
    """Relative to the size of the outputs, which makes it comparable."""
    if loss["largest_logit_error"] is None:
        return "nothing finite"
    broken = f", {loss['broken_positions']} broken" if loss["broken_positions"] else ""
    return f"{percent(loss['largest_relative_error'])} of rms{broken}"


def _divergence(loss: Loss) -> str:
    if loss["kl_divergence"] is None:
        return ""
    return f"{digits(loss['kl_divergence'])} nats per position"


def _agreement(loss: Loss) -> str:
    share = _share(loss["top1_agreement"])
    interval = loss.get("top1_agreement_interval")
    if interval:
        share += f" ({_share(interval[0])} … {_share(interval[1])})"
    samples = f"{loss['samples']:,} samples"
    if loss["positions"] != loss["samples"]:
        samples += f", {loss['positions']:,} positions"
    return f"{share} with {loss['reference']}, {samples}, {loss['data']}"


def _task_value(task: dict[str, Any] | None) -> str:
    """In full precision."""
    return f"{task['metric']} {_metric_value(task, 'value')}" if task else ""


def _task_in_full(task: dict[str, Any] | None) -> str:
    if not task or not task["interval"]:
        return _task_value(task)
    ends = [_share(end) if task["metric"] == TOP1 else digits(end) for end in task["interval"]]
    samples = f"{task['samples']:,} samples"
    return f"{_task_value(task)} ({ends[0]} … {ends[1]}, 95 %, {samples} of the test set)"


def _task(loss: Loss) -> str:
    task = loss.get("task")
    if not task:
        return ""
    before, after = _metric_value(task, "before"), _metric_value(task, "after")
    return f"{task['metric']} {before} → {after}"


def _task_change(loss: Loss) -> str:
    task = loss["task"]
    if not task:
        return f"not known: {loss['task_absent']}"
    if task["change"] is None or not task["change_interval"]:
        return _task(loss)
    # Shares become points or per cent.
    low, high = (f"{100 * end:+.2f}" for end in task["change_interval"])
    unit = "points" if task["metric"] == TOP1 else "%"
    change = f"change {100 * task['change']:+.2f} {unit}"
    return f"{_task(loss)}, {change} ({low} … {high}, 95 % paired, {task['samples']:,} samples)"


def _metric_value(task: dict[str, Any], name: str) -> str:
    value = task[name]
    if value is None:
        return "broken"
    return _share(value) if task["metric"] == TOP1 else digits(value)


def _share(value: float) -> str:
    """Two decimals: 99.96 % is not all."""
    return f"{100 * value:.2f} %"
