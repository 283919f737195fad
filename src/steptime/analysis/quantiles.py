"""Order statistics of numbers in ascending order: sorting once is faster than many selections."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

Numbers = NDArray[np.float64]

PERCENTILES = (0.0, 5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0)
CONFIDENCE = 0.95


def percentile(ascending: Numbers, percent: float) -> float:
    """Linear between two values, as in NumPy and most tools."""
    position = percent / 100 * (len(ascending) - 1)
    low = ascending[math.floor(position)]
    high = ascending[math.ceil(position)]
    return float(low + (high - low) * (position % 1))


def median(ascending: Numbers) -> float:
    count = len(ascending)
    return float((ascending[(count - 1) // 2] + ascending[count // 2]) / 2)


def deviation(ascending: Numbers) -> float:
    """Median absolute deviation from the median.

    No second sort: the distances on either side of the median are in order already."""
    count = len(ascending)
    centre = median(ascending)
    split = int(np.searchsorted(ascending, centre))
    below = ascending[:split][::-1]
    above = ascending[split:]

    def nth_distance(number: int) -> float:
        """The `number`-th smallest distance: `left` of those up to it lie below the centre."""
        fewest = max(0, number - len(above))
        most = min(number, len(below))

        def is_enough(left: int) -> bool:
            return bool(centre - below[left] >= above[number - 1 - left] - centre)

        left = fewest + bisect_left(range(fewest, most), True, key=is_enough)
        distance_below = centre - below[left - 1] if left else 0.0
        distance_above = above[number - left - 1] - centre if left < number else 0.0
        return float(max(distance_below, distance_above))

    return (nth_distance((count + 1) // 2) + nth_distance(count // 2 + 1)) / 2


def ranks(values: Numbers) -> Numbers:
    """From 0 on; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts) - 1.0
    shared: Numbers = (last - (counts - 1) / 2)[inverse]
    return shared


def steps_needed(percent: float) -> int:
    """So many that one lies beyond the percentile with 95 %. Minimum and maximum need one step."""
    inner = max(percent, 100 - percent) / 100
    return 1 if inner == 1 else math.ceil(math.log(1 - CONFIDENCE) / math.log(inner))


def bound(ascending: Numbers, percent: float) -> float | None:
    """The order statistic that lies beyond the true percentile with 95 %.

    Binomial: the steps are taken as independent."""
    count = len(ascending)
    inner = max(percent, 100 - percent) / 100
    if inner == 1 or count < steps_needed(percent):
        return None
    rank = _bound_rank(count, inner)
    return float(ascending[rank] if percent >= 50 else ascending[count - 1 - rank])


@lru_cache(maxsize=1024)
def _bound_rank(count: int, share: float) -> int:
    return bisect_left(range(count), CONFIDENCE, key=lambda rank: float(bdtr(rank, count, share)))
