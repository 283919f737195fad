"""Whether the clock can be trusted: its cost, resolution, source, and drift over the run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

Clock = Callable[[], int]

SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"
CALLS = 10_000


def self_test(clock: Clock = time.perf_counter_ns, calls: int = CALLS) -> dict[str, Any]:
    """From consecutive calls. Cost is what one stamp adds; resolution is the smallest step seen."""
    stamps = [clock() for _ in repeat(None, calls)]
    # Two equal stamps only show that the clock is coarse; they say nothing about its step.
    steps = [after - before for before, after in pairwise(stamps)]
    positive = [step for step in steps if step > 0]
    return {
        "cost_ns": statistics.median(steps),
        "resolution_ns": min(positive, default=0),
        "monotone": min(steps) >= 0,
    }


def source(root: Path = Path("/")) -> str | None:
    """`tsc` is read without a system call. All others are slow, and some are coarse."""
    try:
        return (root / SOURCE).read_text().strip()
    except OSError:
        return None


class Drift:
    """Compares the measuring clock with the system's: a wrong clock or a sleep shows here."""

    def __init__(self, clock: Clock = time.perf_counter_ns, system: Clock = time.time_ns) -> None:
        self._clock = clock
        self._system = system
        self._start_ns = clock()
        self._system_start_ns = system()

    def share(self) -> float:
        """How far the clock has run ahead of the system's since the start, as a share."""
        system_ns = self._system() - self._system_start_ns
        if system_ns <= 0:
            return 0.0
        return (self._clock() - self._start_ns) / system_ns - 1.0
