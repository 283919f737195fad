"""How a step's time divides into its phases, by marks inside the step.

If the step cannot be divided, by the difference from a shorter program."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.inspection import Inspectable
from steptime.core.program import Program

TURNS = 5
TURN_SECONDS = 0.4
LEAST_TURN_STEPS, MOST_TURN_STEPS = 3, 200
REST = "backward and optimizer"

Lower = Callable[[Case], Program]


def measure_phases(program: Program, case: Case, lower: Lower) -> dict[str, Any]:
    steps = turn_steps(program)
    if not _has_phases(program):
        return undivided_phases(program, case, lower, steps)
    plain, marked = [], []
    phase_timer = PhaseTimer(program)
    # The two alternate, so that a drift affects both.
    for _ in range(TURNS):
        plain.append(step_seconds(program, program.step, steps))
        marked.append(step_seconds(program, phase_timer.step, steps))
        phase_timer.settle()
    count = TURNS * steps
    seconds = {}
    for name, nanoseconds in phase_timer.nanoseconds.items():
        seconds[name] = nanoseconds / count / 1e9
    facts = {
        "seconds": seconds,
        "how": "events on the device" if program.timer else "stamps",
        "steps": count,
    }
    return {**facts, **perturbation(plain, marked)}


def _has_phases(program: Program) -> bool:
    if not hasattr(program, "step_in_stages"):
        return False
    try:
        PhaseTimer(program).step()
    except Unsupported:
        return False
    return True


def undivided_phases(program: Program, case: Case, lower: Lower, steps: int) -> dict[str, Any]:
    """Compare the complete step with its forward phase alone, in turns."""
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
    forward_seconds = []
    complete_seconds = []
    for _ in range(TURNS):
        forward_seconds.append(step_seconds(forward, forward.step, steps))
        complete_seconds.append(step_seconds(program, program.step, steps))
    rests = []
    for short, complete in zip(forward_seconds, complete_seconds, strict=True):
        rests.append(max(0.0, complete - short))
    usual_forward = statistics.median(forward_seconds)
    usual_complete = statistics.median(complete_seconds)
    return {
        "seconds": {
            "forward": min(usual_forward, usual_complete),
            REST: max(0.0, usual_complete - usual_forward),
        },
        "range_seconds": {REST: [min(rests), max(rests)]},
        "how": "by difference",
        "steps": TURNS * steps,
        "plain_seconds": usual_complete,
    }


class PhaseTimer:
    """Marks the ends of a step's phases. What follows the last mark is a phase of its own."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.timer = program.timer
        self.stamp: Callable[[], Any] = self.timer.record if self.timer else time.perf_counter_ns
        self.nanoseconds: dict[str, int] = {}
        self.marks: list[tuple[str, Any]] = []

    def step(self) -> Any:
        if not self.marks:
            self.mark("")
        outputs = cast(Inspectable, self.program).step_in_stages(self.mark)
        self.mark("other")
        return outputs

    def mark(self, name: str) -> None:
        self.marks.append((name, self.stamp()))

    def settle(self) -> None:
        """Add up the marks so far. Call only after the device has been waited for."""
        for (_, first), (name, last) in pairwise(self.marks):
            elapsed_ns = self.timer.elapsed_ns(first, last) if self.timer else last - first
            self.nanoseconds[name] = self.nanoseconds.get(name, 0) + elapsed_ns
        self.marks = []


def turn_steps(program: Program) -> int:
    seconds = step_seconds(program, program.step, 2)
    return min(MOST_TURN_STEPS, max(LEAST_TURN_STEPS, round(TURN_SECONDS / seconds)))


def step_seconds(program: Program, step: Callable[[], Any], steps: int) -> float:
    program.wait()
    begin = time.perf_counter()
    for _ in range(steps):
        outputs = step()
    program.wait()
    seconds = (time.perf_counter() - begin) / steps
    del outputs
    return seconds


def perturbation(plain: list[float], marked: list[float]) -> dict[str, float]:
    """Of the medians, because a single turn may be disturbed."""
    plain_seconds = statistics.median(plain)
    marked_seconds = statistics.median(marked)
    return {"plain_seconds": plain_seconds, "perturbation": marked_seconds / plain_seconds - 1}
