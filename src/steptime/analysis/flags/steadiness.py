"""Tests of whether the order of numbers matters: drift, level shifts, correlation, two groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from steptime.analysis import intervals
from steptime.analysis.quantiles import Numbers, deviation, ranks
from steptime.core.protocol import ROBUST

PERMUTATIONS = 4_999
# Fewer points are not tested.
LEAST_POINTS = 6
# Medians farther from the centre are clipped: a single wild block must not look like a shift.
CLIP = 6.0
# A gap counts if it is so many times as wide as the next widest one.
GAP_RATIO = 3


@dataclass(frozen=True)
class Trend:
    """A change inside one process, with the p-value of a permutation test."""

    change: float  # relative
    p: float
    position: int = 0  # the first point after the change


def drift(medians: Numbers) -> Trend | None:
    """Last third against first third, with a permutation test of the ranks.

    The change is the Hodges–Lehmann shift of the logarithms, so none is below −100 %."""
    count = len(medians)
    if count < LEAST_POINTS:
        return None
    third = count // 3
    first = np.log(medians[:third])
    last = np.log(medians[-third:])
    change = math.expm1(intervals.shift(first, last))
    weights = np.zeros(count)
    weights[:third] = -1
    weights[-third:] = 1
    order = ranks(medians)
    statistic = abs(float(order @ weights))
    return Trend(change, _share_beyond(np.abs(_shuffles(order) @ weights), statistic))


def level_shift(medians: Numbers) -> Trend | None:
    """The largest standardised cumulative sum of the clipped medians, with a permutation test."""
    count = len(medians)
    if count < LEAST_POINTS:
        return None
    centre = float(np.median(medians))
    reach = CLIP * ROBUST * deviation(np.sort(medians))
    clipped = np.clip(medians, centre - reach, centre + reach) - centre
    if np.ptp(clipped) == 0:
        return None
    sums = _cumulative_sums(clipped[None, :])[0]
    position = int(np.argmax(sums)) + 2
    p = _share_beyond(_cumulative_sums(_shuffles(clipped)).max(axis=1), sums.max())
    before = np.median(medians[:position])
    after = np.median(medians[position:])
    return Trend(float(after / before) - 1, p, position)


def _cumulative_sums(rows: Numbers) -> Numbers:
    """Standardised cumulative sums after 2, 3, … n − 2 points of each row."""
    count = rows.shape[1]
    centred = rows - rows.mean(axis=1, keepdims=True)
    sums = np.cumsum(centred, axis=1)[:, 1:-2]
    positions = np.arange(2, count - 1)
    standardised: Numbers = np.abs(sums) / np.sqrt(positions * (count - positions) / count)
    return standardised


def neighbour_correlation_p(values: Numbers) -> float:
    """p of a rank von Neumann test (Bartels 1982) against positive correlation of neighbours."""
    if len(values) < LEAST_POINTS:
        return 1.0
    order = ranks(values)
    statistic = float(np.sum(np.diff(order) ** 2))
    shuffled = np.sum(np.diff(_shuffles(order), axis=1) ** 2, axis=1)
    # Correlated neighbours make the sum small, hence the signs.
    return _share_beyond(-shuffled, -statistic)


def gap_between_groups(values: Numbers) -> tuple[float, float] | None:
    """The edges of a gap over 3 × as wide as any other, with at least two values on both sides."""
    ascending = np.sort(values)
    gaps = np.diff(ascending)
    if len(gaps) < 3:
        return None
    widest = int(np.argmax(gaps))
    next_widest = float(np.delete(gaps, widest).max())
    if gaps[widest] <= GAP_RATIO * next_widest or not 1 <= widest <= len(gaps) - 2:
        return None
    return float(ascending[widest]), float(ascending[widest + 1])


def _share_beyond(shuffled: Numbers, statistic: float) -> float:
    """p-value of a permutation test; the observed order counts as one of the permutations."""
    # Equal statistics may differ in the last digits, because sums were taken in another order.
    limit = statistic - 1e-12 * abs(statistic)
    return float((1 + np.count_nonzero(shuffled >= limit)) / (1 + len(shuffled)))


def _shuffles(values: Numbers) -> Numbers:
    return values[_orders(len(values))]


@lru_cache(maxsize=64)
def _orders(count: int) -> NDArray[np.int64]:
    """The same random orders each time: equal samples must give equal flags."""
    rng = np.random.default_rng(count)
    return np.argsort(rng.random((PERMUTATIONS, count)), axis=1)
