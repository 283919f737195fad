"""One number with its interval: the typical and the mean step time of several processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steptime.analysis import intervals, statistics
from steptime.analysis.process import Process
from steptime.analysis.quantiles import Numbers, deviation
from steptime.core.protocol import ROBUST

ACROSS = "95 % across processes"
WITHIN = "within this run"
OPTIMISTIC = "disturbed: may be optimistic"
TOO_FEW_PROCESSES = "no interval: too few processes"
TOO_FEW_SAMPLES = "no interval: too few samples"
# Student's interval from fewer processes than this is not claimed to hold across processes.
LEAST_PROCESSES = 6
# So many standard deviations above the median, a process counts as disturbed.
DISTURBED = 5.0


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
        high = None
        # Student's interval may reach below zero, where no rate exists.
        if self.low is not None and self.low > 0:
            high = units / self.low
        return Estimate(units / self.value, low, high, self.claim)


def typical_time(processes: Sequence[Process]) -> Estimate:
    """Hodges–Lehmann centre of the processes' medians, with an interval from six processes on."""
    medians = np.array([process.typical for process in processes])
    interval = intervals.signed_rank(medians, processes[-1].attempt.protocol.look_alpha)
    if interval is None:
        return Estimate(intervals.typical(medians), None, None, TOO_FEW_PROCESSES)
    return Estimate(interval.centre, interval.low, interval.high, ACROSS)


def mean_time(processes: Sequence[Process]) -> Estimate:
    """Mean of the processes' means. Few processes only allow an interval within this run."""
    means = np.array([process.mean for process in processes])
    if len(processes) < LEAST_PROCESSES:
        return _mean_within_run(processes, means)
    interval = intervals.student(means, processes[-1].attempt.protocol.look_alpha)
    assert interval is not None
    claim = f"{ACROSS}, {OPTIMISTIC}" if is_disturbed(means) else ACROSS
    return Estimate(interval.centre, interval.low, interval.high, claim)


def _mean_within_run(processes: Sequence[Process], means: Numbers) -> Estimate:
    """Only the variation inside each process is known: the widest interval counts."""
    half_widths = []
    for process in processes:
        interval = statistics.within_run(process.step_seconds)
        if interval is not None:
            half_widths.append(interval.half_width)
    centre = float(means.mean())
    if len(half_widths) < len(processes):
        return Estimate(centre, None, None, TOO_FEW_SAMPLES)
    reach = max(half_widths)
    return Estimate(centre, centre * (1 - reach), centre * (1 + reach), WITHIN)


def is_disturbed(means: Numbers) -> bool:
    """One process lies far above the others: Student's interval is then too narrow."""
    reach = DISTURBED * ROBUST * deviation(np.sort(means))
    return bool(means.max() > np.median(means) + reach)
