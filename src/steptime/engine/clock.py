"""Whether the clock can be trusted: its cost, its resolution, its source and its drift over the run."""

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
    """Back-to-back calls. Cost is what one stamp adds; resolution is the smallest step the clock was seen to make."""
    stamps = [clock() for _ in repeat(None, calls)]
    steps = [b - a for a, b in pairwise(stamps)]
    return {
        "cost_ns": statistics.median(steps),
        "resolution_ns": min((step for step in steps if step > 0), default=0),
        "monotone": min(steps) >= 0,
    }


def source(root: Path = Path("/")) -> str | None:
    """`tsc` is read without leaving the process; anything else is slow, and some are coarse."""
    try:
        return (root / SOURCE).read_text().strip()
    except OSError:
        return None


class Drift:
    """The measuring clock against the system's: a clock that runs wrong, or a machine that slept, shows here."""

    def __init__(self, clock: Clock = time.perf_counter_ns, system: Clock = time.time_ns) -> None:
        self._clock, self._system = clock, system
        self._start_ns, self._system_start_ns = clock(), system()

    def share(self) -> float:
        """By how much the clock has run ahead of the system's since the start, relative."""
        system_ns = self._system() - self._system_start_ns
        return (self._clock() - self._start_ns) / system_ns - 1.0 if system_ns > 0 else 0.0
