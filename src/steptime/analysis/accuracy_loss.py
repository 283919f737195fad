"""The accuracy loss that belongs to a comparison of two precisions, as a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steptime.core.accuracy import is_low
from steptime.core.format import percent
from steptime.core.record import Attempt

Loss = dict[str, Any]


def measured_loss(attempts: Sequence[Attempt]) -> Loss | None:
    """By the first process that has it: it is deterministic."""
    for attempt in attempts:
        if "accuracy" in attempt.findings:
            loss: Loss = attempt.findings["accuracy"]
            return loss
    return None


def loss_sentence(a: Sequence[Attempt], b: Sequence[Attempt]) -> str:
    """What the lower precision costs. Empty if both computed in the same precision."""
    if a[0].case.precision == b[0].case.precision:
        return ""
    sentences = []
    for attempts in (a, b):
        precision = attempts[0].case.precision
        if is_low(precision):
            sentences.append(f"{precision}'s {_describe(attempts)}")
    if sentences:
        return "; ".join(sentences)
    return "accuracy loss unknown: fp32 was not compared with fp64"


def _describe(attempts: Sequence[Attempt]) -> str:
    loss = measured_loss(attempts)
    if loss is None:
        return "accuracy loss unknown: no process compared its outputs with fp32"
    samples = f"{loss['samples']:,} samples, {loss['data']}"
    texts = [f"top-1 agreement {_agreement(loss)} with fp32"]
    task = loss.get("task")
    if task and task.get("before") is not None and task.get("after") is not None:
        texts.append(
            f"{task['metric']} {_task_value(task, 'before')} → {_task_value(task, 'after')}"
        )
    if loss.get("largest_relative_error") is not None:
        texts.append(f"largest logit error {percent(loss['largest_relative_error'])} of rms")
    if loss.get("broken_positions"):
        texts.append(f"{loss['broken_positions']:,} outputs not finite")
    return f"accuracy loss: {', '.join(texts)} ({samples})"


def _agreement(loss: Loss) -> str:
    """One decimal, but never 100 % for less than all."""
    share = loss["top1_agreement"]
    text = f"{100 * share:.1f} %" if share == 1 or share < 0.9995 else f"{100 * share:.3f} %"
    interval = loss.get("top1_agreement_interval")
    if not interval:
        return text
    return f"{text} ({100 * interval[0]:.1f} … {100 * interval[1]:.1f})"


def _task_value(task: Loss, name: str) -> str:
    value: float = task[name]
    return f"{100 * value:.2f} %" if task["metric"] == "top-1 accuracy" else f"{value:.4g}"
