"""Order statistics of one row of numbers in ascending order: sorting once is quicker than selecting many times."""

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
    """Between two values by straight line, as NumPy and most tools do."""
    place = percent / 100 * (len(ascending) - 1)
    low, high = ascending[math.floor(place)], ascending[math.ceil(place)]
    return float(low + (high - low) * (place % 1))


def median(ascending: Numbers) -> float:
    count = len(ascending)
    return float((ascending[(count - 1) // 2] + ascending[count // 2]) / 2)


def deviation(ascending: Numbers) -> float:
    """Median absolute deviation from the median: the distances to both sides are in order already."""
    centre, count = median(ascending), len(ascending)
    split = int(np.searchsorted(ascending, centre))
    below, above = ascending[:split][::-1], ascending[split:]

    def smallest(number: int) -> float:
        """The largest of so many smallest distances, some of them below the centre."""
        fewest, most = max(0, number - len(above)), min(number, len(below))

        def is_enough(left: int) -> bool:
            return bool(centre - below[left] >= above[number - 1 - left] - centre)

        left = fewest + bisect_left(range(fewest, most), True, key=is_enough)
        distance_below = centre - below[left - 1] if left else 0.0
        distance_above = above[number - left - 1] - centre if left < number else 0.0
        return float(max(distance_below, distance_above))

    return (smallest((count + 1) // 2) + smallest(count // 2 + 1)) / 2


def steps_needed(percent: float) -> int:
    """So many that one of them lies beyond the percentile with 95 %; minimum and maximum just are."""
    inner = max(percent, 100 - percent) / 100
    return 1 if inner == 1 else math.ceil(math.log(1 - CONFIDENCE) / math.log(inner))


def bound(ascending: Numbers, percent: float) -> float | None:
    """The order statistic that lies beyond the true percentile with 95 % (binomial: steps as if independent)."""
    inner, count = max(percent, 100 - percent) / 100, len(ascending)
    if inner == 1 or count < steps_needed(percent):
        return None
    rank = _bound_rank(count, inner)
    return float(ascending[rank] if percent >= 50 else ascending[count - 1 - rank])


@lru_cache(maxsize=1024)
def _bound_rank(count: int, share: float) -> int:
    return bisect_left(range(count), CONFIDENCE, key=lambda rank: float(bdtr(rank, count, share)))
