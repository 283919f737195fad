"""How a step's time falls on its parts, by marks inside it; where it is one piece, by what a shorter program takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from steptime.core.case import Case
from steptime.core.errors import Unsupported

TURNS = 5
TURN_SECONDS, TURN_STEPS = 0.4, (3, 200)
Lower = Callable[[Case], Any]


def phases(program: Any, case: Case, lower: Lower) -> dict[str, Any]:
    steps = turn_steps(program)
    if not _has_parts(program):
        return in_one_piece(program, case, lower, steps)
    plain, marked = [], []
    stages = Stages(program)
    for _ in range(TURNS):  # in turns: what drifts meanwhile hits both
        plain.append(step_seconds(program, program.step, steps))
        marked.append(step_seconds(program, stages.step, steps))
        stages.settle()
    count = TURNS * steps
    seconds = {name: nanoseconds / count / 1e9 for name, nanoseconds in stages.nanoseconds.items()}
    told = {
        "seconds": seconds,
        "how": "events on the device" if program.timer else "stamps",
        "steps": count,
    }
    return {**told, **perturbation(plain, marked)}


def _has_parts(program: Any) -> bool:
    if not hasattr(program, "step_in_stages"):
        return False
    try:
        Stages(program).step()
    except Unsupported:
        return False
    return True


def in_one_piece(program: Any, case: Case, lower: Lower, steps: int) -> dict[str, Any]:
    """The whole against its forward part alone, in turns."""
    if case.phase != "training":
        seconds = step_seconds(program, program.step, steps)
        return {
            "seconds": {"forward": seconds},
            "how": "the step is one piece",
            "steps": steps,
            "plain_seconds": seconds,
        }
    forward = lower(replace(case, phase="forward"))
    turn_steps(forward)  # compiles
    turns = [
        [step_seconds(one, one.step, steps) for one in (forward, program)] for _ in range(TURNS)
    ]
    first, whole = (statistics.median(times) for times in zip(*turns, strict=True))
    rests = sorted(max(0.0, full - part) for part, full in turns)
    return {
        "seconds": {"forward": min(first, whole), "backward and optimizer": max(0.0, whole - first)},
        "range_seconds": {"backward and optimizer": [rests[0], rests[-1]]},
        "how": "by difference", "steps": TURNS * steps, "plain_seconds": whole,
    }  # fmt: skip


class Stages:
    """Marks of a step's parts. They tile it: what follows the last one is its own part."""

    def __init__(self, program: Any) -> None:
        self.program, self.timer = program, program.timer
        self.stamp: Callable[[], Any] = self.timer.record if self.timer else time.perf_counter_ns
        self.nanoseconds: dict[str, int] = {}
        self.marks: list[tuple[str, Any]] = []

    def step(self) -> Any:
        if not self.marks:
            self.marks.append(("", self.stamp()))
        outputs = self.program.step_in_stages(self.mark)
        self.mark("other")
        return outputs

    def mark(self, name: str) -> None:
        self.marks.append((name, self.stamp()))

    def settle(self) -> None:
        """Only after the device has been waited for."""
        for (_, first), (name, last) in pairwise(self.marks):
            passed = self.timer.elapsed_ns(first, last) if self.timer else last - first
            self.nanoseconds[name] = self.nanoseconds.get(name, 0) + passed
        self.marks = []


def turn_steps(program: Any) -> int:
    least, most = TURN_STEPS
    return min(most, max(least, round(TURN_SECONDS / step_seconds(program, program.step, 2))))


def step_seconds(program: Any, step: Callable[[], Any], steps: int) -> float:
    program.wait()
    begin = time.perf_counter()
    for _ in range(steps):
        outputs = step()
    program.wait()
    taken = (time.perf_counter() - begin) / steps
    del outputs
    return taken


def perturbation(plain: list[float], marked: list[float]) -> dict[str, float]:
    """Of the medians: one slow turn is nobody's doing."""
    usual = statistics.median(plain)
    return {"plain_seconds": usual, "perturbation": statistics.median(marked) / usual - 1}
