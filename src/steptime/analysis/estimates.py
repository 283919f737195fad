"""One number with its interval: the typical step time of several processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steptime.analysis import dependence, intervals
from steptime.analysis.process import Process
from steptime.analysis.quantiles import Numbers

ACROSS = "95 % across processes"
TOO_FEW_PROCESSES = "no interval: too few processes"
# An interval that is wider by less than 5 % is not said to be widened.
WORTH_SAYING = 1.05


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, and what the interval claims."""

    value: float
    low: float | None
    high: float | None
    claim: str

    @property
    def half_width(self) -> float | None:
        """Relative to the value."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2 / self.value

    def as_rate(self, units: float) -> Estimate:
        """Convert a time per step into units per second."""
        low = None if self.high is None else units / self.high
        high = None if self.low is None else units / self.low
        return Estimate(units / self.value, low, high, self.claim)


def typical_time(processes: Sequence[Process]) -> Estimate:
    """Hodges–Lehmann centre of the processes' medians, with an interval from six processes on."""
    medians = ordered_medians(processes)
    alpha = processes[-1].attempt.protocol.look_alpha
    widening = interval_widening(processes)
    interval = dependence.typical_interval(medians, alpha, widening)
    if interval is None:
        return Estimate(intervals.typical(medians), None, None, TOO_FEW_PROCESSES)
    claim = ACROSS
    if widening >= WORTH_SAYING:
        claim = f"{ACROSS}, widened ×{widening:.2g}"
    return Estimate(interval.centre, interval.low, interval.high, claim)


def interval_widening(processes: Sequence[Process]) -> float:
    """How much wider the interval is than that of independent processes."""
    attempts = [process.attempt for process in in_time_order(processes)]
    most = dependence.most_correlation(attempts)
    return dependence.widening(ordered_medians(processes), most)


def ordered_medians(processes: Sequence[Process]) -> Numbers:
    return np.array([process.typical for process in in_time_order(processes)])


def in_time_order(processes: Sequence[Process]) -> list[Process]:
    """Processes of a campaign may overtake each other."""
    return sorted(processes, key=lambda process: process.attempt.started)
