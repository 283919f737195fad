"""AlgoPerf's run logs: one training run per trial, with the target from a file beside it."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import (
    as_dict,
    clean_text,
    first_match,
    integer,
    number,
    parse_json,
    ratio,
)

TITLE = "AlgoPerf run logs"
# A log holds several trials, each after such a heading.
TRIAL = re.compile(r"^.*--- Tuning run (\d+)/\d+ ---.*$", re.MULTILINE)
# The braces hold a Python dictionary of the measures.
EVALUATION = re.compile(r"Time since start: ([\d.]+)s,\s*Step: (\d+),\s*(\{.*\})")
FLAGS = re.compile(r"--(\w+)=(\S+)")
# Keys of the JSON files that lie below a log.
SETTINGS = (b'"workload.', b'"submission_path"', b'"one_minus_beta1"')


class Evaluation(NamedTuple):
    # Of the submission alone, which is what AlgoPerf scores.
    seconds: float
    # The measure that the target is about.
    value: float
    loss: float | None


class Target(NamedTuple):
    measure: str
    value: float | None


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"{":
        return any(mark in head for mark in SETTINGS)
    return b"submission_runner.py" in head


def read(file: Original) -> Rows:
    if file.text.lstrip()[:1] == "{":
        yield Skipped("file", "the settings of a trial: used by the log above it")
        return
    starts = list(TRIAL.finditer(file.text))
    ends = [*(match.start() for match in starts[1:]), len(file.text)]
    for match, end in zip(starts, ends, strict=False):
        yield _read_trial(file, int(match[1]), file.text[match.start() : end])
    if not starts:
        yield Skipped("log", "no tuning run begins in it")


def _read_trial(file: Original, trial: int, text: str) -> Row:
    # The command line is in the first lines of the log.
    flags = dict(FLAGS.findall(file.text[:5000]))
    settings = _settings(file, trial) or _settings(file, 1)
    target = _target(settings)
    evaluations = _evaluations(text, target.measure)
    reached = _time_to_target(evaluations, target)
    all_steps = [number(step) or 0 for step in re.findall(r"Step: (\d+)", text)]
    steps = max(all_steps, default=0)
    seconds = number(first_match(r"Timing: ([\d.]+)", text))
    if not seconds:
        seconds = evaluations[-1].seconds if evaluations else None
    return file.run(
        f"trial {trial}",
        {
            "model": flags.get("workload", "").split("_")[0],
            "framework": flags.get("framework"),
            "phase": "training",
            "suite": "AlgoPerf",
            "submitter": flags.get("submission_path", "").rpartition("/")[2],
            "device": clean_text(settings.get("gpu_model_name")),
            "devices": integer(settings.get("gpu_count")),
        },
        {
            "time_to_accuracy": reached,
            "task_metric": max((point.value for point in evaluations), default=None),
            "loss": evaluations[-1].loss if evaluations else None,
            "step_time": ratio(seconds, steps),
        },
        failure="" if reached is not None else _failure(evaluations, target),
        more={
            "measure": target.measure,
            "target": target.value,
            "evaluations": len(evaluations),
            "steps": steps,
            "seconds": seconds,
        },
    )


def _settings(file: Original, trial: int) -> dict[str, Any]:
    neighbour = file.neighbour(f"trial_{trial}/meta_data_0.json")
    return as_dict(parse_json(neighbour.text)) if neighbour else {}


def _target(settings: dict[str, Any]) -> Target:
    name = clean_text(settings.get("workload.target_metric_name")) or "accuracy"
    value = number(settings.get("workload.validation_target_value"))
    return Target(f"validation/{name}", value)


def _evaluations(text: str, measure: str) -> list[Evaluation]:
    evaluations = []
    for match in EVALUATION.finditer(text):
        values = _parse_literal(match[3])
        value = number(values.get(measure))
        seconds = number(values.get("score"))
        if value is not None and seconds is not None:
            loss = number(values.get("validation/loss"))
            evaluations.append(Evaluation(seconds, value, loss))
    return evaluations


def _parse_literal(text: str) -> dict[str, Any]:
    try:
        return as_dict(ast.literal_eval(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {}


def _time_to_target(evaluations: list[Evaluation], target: Target) -> float | None:
    if target.value is None:
        return None
    for evaluation in evaluations:
        if evaluation.value >= target.value:
            return evaluation.seconds
    return None


def _failure(evaluations: list[Evaluation], target: Target) -> str:
    if not evaluations:
        return "no evaluation"
    best = max(evaluation.value for evaluation in evaluations)
    if target.value is None:
        return f"{target.measure} reached {best:.4f}; no target is known"
    return f"{target.measure} reached {best:.4f}, below its target {target.value}"
