"""AlgoPerf's run logs: one training run a trial, with the target from the description beside it."""

from __future__ import annotations

import ast
import re
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._parse import matches, number, parsed, spelled, whole

TITLE = "AlgoPerf run logs"
TRIAL = re.compile(r"^.*--- Tuning run (\d+)/\d+ ---.*$", re.MULTILINE)
EVALUATION = re.compile(r"Time since start: ([\d.]+)s,\s*Step: (\d+),\s*(\{.*\})")
FLAGS = re.compile(r"--(\w+)=(\S+)")


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"{":
        return (
            b'"workload.' in head or b'"submission_path"' in head or (b'"one_minus_beta1"' in head)
        )
    return b"submission_runner.py" in head


def read(file: Original) -> Found:
    if file.text.lstrip()[:1] == "{":
        yield Skipped("file", "the settings of a trial: used by the log above it")
        return
    starts = [*TRIAL.finditer(file.text)]
    ends = [*(match.start() for match in starts[1:]), len(file.text)]
    for match, end in zip(starts, ends, strict=False):
        yield _trial(file, int(match[1]), file.text[match.start() : end])
    if not starts:
        yield Skipped("log", "no tuning run begins in it")


def _trial(file: Original, trial: int, text: str) -> Row:
    flags = dict(FLAGS.findall(file.text[:5000]))
    about = _beside(file, f"trial_{trial}/meta_data_0.json") or _beside(
        file, "trial_1/meta_data_0.json"
    )
    measure, target = _target(about)
    points = [_point(match, measure) for match in EVALUATION.finditer(text)]
    known = [point for point in points if point is not None]
    reached = next(
        (time for time, value, _ in known if target is not None and value >= target), None
    )
    failure = "" if reached is not None else _failure(known, measure, target)
    steps = max((number(step) or 0 for step in re.findall(r"Step: (\d+)", text)), default=0)
    seconds = number(matches(r"Timing: ([\d.]+)", text)) or (known[-1][0] if known else None)
    return file.run(
        f"trial {trial}",
        {
            "model": flags.get("workload", "").split("_")[0], "framework": flags.get("framework"), "phase": "training",
            "suite": "AlgoPerf", "submitter": flags.get("submission_path", "").rpartition("/")[2],
            "device": spelled(about.get("gpu_model_name")), "devices": whole(about.get("gpu_count")),
        },
        {
            "time_to_accuracy": reached,
            "task_metric": max((value for _, value, _ in known), default=None),
            "loss": known[-1][2] if known else None,
            "step_time": seconds / steps if seconds and steps else None,
        },
        failure=failure,
        more={"measure": measure, "target": target, "evaluations": len(known), "steps": steps, "seconds": seconds},
    )  # fmt: skip


def _beside(file: Original, relative: str) -> dict[str, Any]:
    neighbour = file.neighbour(relative)
    values = parsed(neighbour.text) if neighbour else None
    return values if isinstance(values, dict) else {}


def _target(about: dict[str, Any]) -> tuple[str, float | None]:
    name = spelled(about.get("workload.target_metric_name")) or "accuracy"
    return f"validation/{name}", number(about.get("workload.validation_target_value"))


def _point(match: re.Match[str], measure: str) -> tuple[float, float, float | None] | None:
    """Seconds of the submission alone, which is what is scored; the measure; the loss."""
    try:
        values = ast.literal_eval(match[3])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    value = number(values.get(measure)) if isinstance(values, dict) else None
    time = number(values.get("score")) if isinstance(values, dict) else None
    return (
        None
        if value is None or time is None
        else (time, value, number(values.get("validation/loss")))
    )


def _failure(
    known: list[tuple[float, float, float | None]], measure: str, target: float | None
) -> str:
    if not known:
        return "no evaluation"
    best = max(value for _, value, _ in known)
    return f"{measure} reached {best:.4f}" + (
        f", below its target {target}" if target is not None else "; no target told"
    )
