"""Whether numbers in a row look as if their order did not matter: drift, level shifts, correlation, two groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from steptime.analysis import intervals
from steptime.analysis.quantiles import Numbers, deviation
from steptime.core.protocol import ROBUST

PERMUTATIONS = 4_999
LEAST_POINTS = 6
CLIP = 6.0


@dataclass(frozen=True)
class Trend:
    """A change inside one process, and how likely a mere order of blocks shows one as large."""

    change: float  # relative
    p: float
    place: int = 0  # the point from which on it is seen


def drift(medians: Numbers) -> Trend | None:
    """Last third against first third: Hodges–Lehmann shift of the logarithms (nothing falls by more than 100 %), and
    a permutation test of the ranks."""
    count = len(medians)
    if count < LEAST_POINTS:
        return None
    third = count // 3
    change = math.expm1(intervals.shift(np.log(medians[:third]), np.log(medians[-third:])))
    weights = np.zeros(count)
    weights[:third], weights[-third:] = -1, 1
    ranks = np.argsort(np.argsort(medians)).astype(float)
    return Trend(
        change, _share_beyond(np.abs(_shuffled(ranks) @ weights), abs(float(ranks @ weights)))
    )


def level_shift(medians: Numbers) -> Trend | None:
    """The largest standardised cumulative sum of the clipped medians, and a permutation test of it."""
    count = len(medians)
    if count < LEAST_POINTS:
        return None
    centre, reach = float(np.median(medians)), CLIP * ROBUST * deviation(np.sort(medians))
    clipped = np.clip(medians, centre - reach, centre + reach) - centre
    if np.ptp(clipped) == 0:
        return None
    seen = _cumulative(clipped[None, :])[0]
    place = int(np.argmax(seen)) + 2
    p = _share_beyond(_cumulative(_shuffled(clipped)).max(axis=1), seen.max())
    return Trend(float(np.median(medians[place:]) / np.median(medians[:place])) - 1, p, place)


def _cumulative(rows: Numbers) -> Numbers:
    """Standardised cumulative sums after 2, 3, … n − 2 points of each row."""
    count = rows.shape[1]
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, 1:-2]
    places = np.arange(2, count - 1)
    result: Numbers = np.abs(sums) / np.sqrt(places * (count - places) / count)
    return result


def rises_together(values: Numbers) -> float:
    """p of a rank von Neumann test (Bartels 1982) against positive correlation of neighbours."""
    if len(values) < LEAST_POINTS:
        return 1.0
    ranks = np.argsort(np.argsort(values)).astype(float)
    seen = float(np.sum(np.diff(ranks) ** 2))
    return _share_beyond(-np.sum(np.diff(_shuffled(ranks), axis=1) ** 2, axis=1), -seen)


def two_groups(values: Numbers) -> tuple[float, float] | None:
    """The edges of a gap that is over 3 × the next widest one, with at least two values on both sides."""
    ascending = np.sort(values)
    gaps = np.diff(ascending)
    if len(gaps) < 3:
        return None
    place = int(np.argmax(gaps))
    others = float(np.delete(gaps, place).max())
    if gaps[place] <= 3 * others or not 1 <= place <= len(gaps) - 2:
        return None
    return float(ascending[place]), float(ascending[place + 1])


def _share_beyond(by_chance: Numbers, seen: float) -> float:
    return float(
        (1 + np.count_nonzero(by_chance >= seen - 1e-12 * abs(seen))) / (1 + len(by_chance))
    )


def _shuffled(values: Numbers) -> Numbers:
    return values[_orders(len(values))]


@lru_cache(maxsize=64)
def _orders(count: int) -> NDArray[np.int64]:
    """The same random orders each time: equal samples must give equal flags."""
    return np.argsort(np.random.default_rng(count).random((PERMUTATIONS, count)), axis=1)
