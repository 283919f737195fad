"""With a clock of its own: what parts take is known exactly."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.tasks.profile import phases
from steptime.tasks.profile.phases import PhaseTimer

CASE = Case(workload="mnist-mlp")


class Clock:
    def __init__(self) -> None:
        self.nanoseconds = 0

    def __call__(self) -> int:
        return self.nanoseconds


class Parted:
    """Two milliseconds forward, three backward; the plain step is as long as the staged one."""

    timer: Any = None

    def __init__(self, clock: Clock, forward_ms: int = 2, backward_ms: int = 3) -> None:
        self.clock, self.parts = clock, {"forward": forward_ms, "backward": backward_ms}

    def step(self) -> None:
        self.clock.nanoseconds += 1_000_000 * sum(self.parts.values())

    def wait(self) -> None: ...

    def step_in_stages(self, mark: Callable[[str], None]) -> None:
        for name, milliseconds in self.parts.items():
            self.clock.nanoseconds += 1_000_000 * milliseconds
            mark(name)


class Whole(Parted):
    def step_in_stages(self, mark: Callable[[str], None]) -> None:
        raise Unsupported("It is one piece.")


class Queue:
    """A device's timer: stamps are taken when the queue gets there."""

    def __init__(self, clock: Clock) -> None:
        self.record = clock

    def elapsed_ns(self, first: int, second: int) -> int:
        return second - first


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter_ns", clock)
    monkeypatch.setattr(time, "perf_counter", lambda: clock() / 1e9)
    return clock


@pytest.mark.parametrize("queued", [False, True])
def test_phases_add_up_to_the_step(clock: Clock, queued: bool) -> None:
    program = Parted(clock)
    program.timer = Queue(clock) if queued else None
    facts = phases.measure_phases(program, CASE, lambda case: None)
    assert facts["seconds"] == pytest.approx({"forward": 0.002, "backward": 0.003, "other": 0.0})
    assert sum(facts["seconds"].values()) == pytest.approx(facts["plain_seconds"])
    assert facts["perturbation"] == pytest.approx(0.0)


def test_phase_timer_adds_up_repeated_phases(clock: Clock) -> None:
    phase_timer = PhaseTimer(Parted(clock))
    phase_timer.step(), phase_timer.step(), phase_timer.settle()
    assert phase_timer.nanoseconds == {"forward": 4_000_000, "backward": 6_000_000, "other": 0}


def test_undivided_training_step_is_measured_by_difference(clock: Clock) -> None:
    phases_lowered = []

    def lower(case: Case) -> Any:
        phases_lowered.append(case.phase)
        return Whole(clock, backward_ms=0)

    facts = phases.measure_phases(Whole(clock), CASE, lower)
    assert phases_lowered == ["forward"] and facts["how"] == "by difference"
    assert facts["seconds"] == pytest.approx({"forward": 0.002, "backward and optimizer": 0.003})
    assert facts["range_seconds"]["backward and optimizer"] == pytest.approx([0.003, 0.003])


def test_perturbation_shows_cost_of_marks(clock: Clock) -> None:
    class Slowed(Parted):
        def step_in_stages(self, mark: Callable[[str], None]) -> None:
            super().step_in_stages(mark)
            self.clock.nanoseconds += 500_000

    assert phases.measure_phases(Slowed(clock), CASE, lambda case: None)[
        "perturbation"
    ] == pytest.approx(0.1)
