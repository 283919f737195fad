"""Intervals from a handful of independent numbers. Knows nothing of processes, time or records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import exp, hypot, log

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from steptime.analysis.quantiles import Numbers, median

NORMAL_95 = 1.96  # so many standard deviations to each side hold 95 % of a normal law


@dataclass(frozen=True)
class Interval:
    centre: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Relative to the centre."""
        return (self.high - self.low) / 2 / abs(self.centre)


@dataclass(frozen=True)
class Ratio:
    value: float
    low: float | None
    high: float | None

    def scaled(self, factor: float) -> Ratio:
        low, high = (None if end is None else factor * end for end in (self.low, self.high))
        return Ratio(factor * self.value, low, high)


Ends = tuple[
    float, float | None, float | None
]  # a positive value, and its interval where it has one


def ratio(above: Ends, below: Ends) -> Ratio:
    """Of two independent results on a log scale: half-widths add as squares. Without both intervals it has none."""
    value, reach = above[0] / below[0], 0.0
    for _, low, high in (above, below):
        if not low or not high or low <= 0:
            return Ratio(value, None, None)
        reach = hypot(reach, log(high / low) / 2)
    return Ratio(value, value * exp(-reach), value * exp(reach))


def student(values: Numbers, alpha: float) -> Interval | None:
    count = len(values)
    if count < 2:
        return None
    centre, error = float(np.mean(values)), float(np.std(values, ddof=1)) / count**0.5
    reach = float(stdtrit(count - 1, 1 - alpha / 2)) * error
    return Interval(centre, centre - reach, centre + reach)


def walsh_averages(values: Numbers) -> Numbers:
    """Means of all pairs, each value with itself too, in ascending order."""
    first, second = pairs(len(values))
    return np.sort((values[first] + values[second]) / 2)


@lru_cache(maxsize=256)
def pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(count)


def typical(values: Numbers) -> float:
    """Hodges and Lehmann's centre: the median of the Walsh averages."""
    return median(walsh_averages(values))


def signed_rank(values: Numbers, alpha: float) -> Interval | None:
    """Hodges–Lehmann centre with the exact signed-rank interval; None where so few values cannot reach alpha."""
    depth = _depth(signed_rank_law(len(values)), alpha)
    if depth == 0:
        return None
    averages = walsh_averages(values)
    return Interval(median(averages), float(averages[depth - 1]), float(averages[-depth]))


def signed_rank_p(values: Numbers) -> float:
    """Two-sided, for "the centre is 0"."""
    first, second = pairs(len(values))
    averages = values[first] + values[second]
    above = np.count_nonzero(averages > 0) + np.count_nonzero(averages == 0) // 2
    smaller = min(above, len(averages) - above)
    return min(1.0, 2 * float(signed_rank_law(len(values))[: smaller + 1].sum()))


def shift(first: Numbers, second: Numbers) -> float:
    """Hodges–Lehmann shift: how much the second lies above the first."""
    return float(np.median(np.subtract.outer(second, first)))


def mann_whitney(first: Numbers, second: Numbers, alpha: float) -> Interval | None:
    """Shift of the second against the first with its exact interval; None where alpha is out of reach."""
    depth = _depth(mann_whitney_law(len(first), len(second)), alpha)
    if depth == 0:
        return None
    differences = np.sort(np.subtract.outer(second, first), axis=None)
    return Interval(median(differences), float(differences[depth - 1]), float(differences[-depth]))


@lru_cache(maxsize=256)
def signed_rank_law(count: int) -> Numbers:
    """Probabilities of the rank sums 0, 1, …: each rank counts or does not, by a fair coin."""
    law = np.ones(1)
    for rank in range(1, count + 1):
        law = np.append(law, np.zeros(rank)) / 2 + np.append(np.zeros(rank), law) / 2
    return law


@lru_cache(maxsize=256)
def mann_whitney_law(first: int, second: int) -> Numbers:
    """Probabilities of U = 0, 1, …: the Gaussian binomial coefficient, in whole numbers so that nothing cancels."""
    ways = [1] + [0] * (first * second)
    for rank in range(1, first + 1):
        far = second + rank
        ways = [way - (ways[i - far] if i >= far else 0) for i, way in enumerate(ways)]
        for start in range(rank):
            ways[start::rank] = accumulate(ways[start::rank])
    total = sum(ways)
    return np.array([way / total for way in ways])


def _depth(law: Numbers, alpha: float) -> int:
    """How many order statistics may be cut from each end so that both tails together keep within alpha."""
    return int(np.searchsorted(2 * np.cumsum(law), alpha, side="right"))


def student_quantile(freedom: int, confidence: float = 0.95) -> float:
    """How many standard errors an interval of this confidence reaches to either side."""
    return float(stdtrit(freedom, (1 + confidence) / 2))
