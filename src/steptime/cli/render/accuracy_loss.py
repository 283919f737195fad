"""What a low precision cost, in words: as columns of a table, and in full."""

from __future__ import annotations

from typing import Any

from steptime.core.format import digits, percent
from steptime.core.record import Record


def columns(record: Record) -> dict[str, str]:
    """Empty texts where the precision is full: nothing was lost."""
    found = record.accuracy or {}
    return {
        "logit error": _largest(found, short=True) if found else "",
        "top-1 agrees": _share(found["top1_agreement"]) if found else "",
        "task": _task(found).removeprefix("top-1 accuracy "),
    }


def lines(record: Record) -> dict[str, str]:
    """For a single result."""
    if not (found := record.accuracy):
        return {}
    whole = found["kl_divergence"] is not None
    mean = (
        f", mean {digits(found['mean_logit_error'])} ({percent(found['mean_relative_error'])})"
        if whole
        else ""
    )
    return {
        "largest logit error": _largest(found) + mean,
        "KL divergence": f"{digits(found['kl_divergence'])} nats a position" if whole else "",
        "top-1 agreement": f"{_share(found['top1_agreement'])}{_range(found.get('top1_agreement_interval'))} with "
        f"{found['reference']}, {_compared(found)}",
        "task": f"{_task(found)}{_change(found['task'])}"
        if found["task"]
        else f"not known: {found['task_absent']}",
        "accuracy note": differing(record),
    }


def differing(record: Record) -> str:
    return "processes disagree on it: the first one's is shown" if record.accuracy_differs else ""


def _largest(found: dict[str, Any], *, short: bool = False) -> str:
    """Beside the size of the outputs, which is what makes it comparable; on its own as well where there is room."""
    if found["largest_logit_error"] is None:
        return "nothing finite"
    broken = f", {found['broken_positions']} broken" if found["broken_positions"] else ""
    share = f"{percent(found['largest_relative_error'])} of rms{broken}"
    return share if short else f"{digits(found['largest_logit_error'])} ({share})"


def _compared(found: dict[str, Any]) -> str:
    positions = (
        "" if found["positions"] == found["samples"] else f", {found['positions']:,} positions"
    )
    return f"{found['samples']:,} samples{positions}, {found['data']}"


def _task(found: dict[str, Any]) -> str:
    if not (task := found.get("task")):
        return ""
    before, after = (_value(task, task[name]) for name in ("before", "after"))
    return f"{task['metric']} {before} → {after}"


def _change(task: dict[str, Any]) -> str:
    if task["change"] is None or not task["change_interval"]:
        return ""
    low, high = (f"{100 * end:+.2f}" for end in task["change_interval"])
    unit = "points" if task["metric"] == "top-1 accuracy" else "%"
    return f", change {100 * task['change']:+.2f} {unit} ({low} … {high}, 95 % paired, {task['samples']:,} samples)"


def _value(task: dict[str, Any], value: float | None) -> str:
    if value is None:
        return "broken"
    return _share(value) if task["metric"] == "top-1 accuracy" else digits(value)


def _share(value: float) -> str:
    """Two decimals: 99.96 % is not all."""
    return f"{100 * value:.2f} %"


def _range(interval: list[float] | None) -> str:
    return f" ({_share(interval[0])} … {_share(interval[1])})" if interval else ""
