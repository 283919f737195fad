"""Intervals from a few independent numbers. Knows nothing of processes, time or records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import exp, hypot, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from steptime.analysis.quantiles import Numbers, median

# So many standard deviations to each side hold 95 % of a normal distribution.
NORMAL_95 = 1.96


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

    def scale(self, factor: float) -> Ratio:
        low = None if self.low is None else factor * self.low
        high = None if self.high is None else factor * self.high
        return Ratio(factor * self.value, low, high)


class Ends(NamedTuple):
    """A positive value, and its interval if it has one."""

    value: float
    low: float | None
    high: float | None


def ratio(above: Ends, below: Ends) -> Ratio:
    """Ratio of two independent results: half-widths add as squares on a log scale.

    It has no interval unless both have one."""
    value = above.value / below.value
    reach = 0.0
    for ends in (above, below):
        if not ends.low or not ends.high or ends.low <= 0:
            return Ratio(value, None, None)
        reach = hypot(reach, log(ends.high / ends.low) / 2)
    return Ratio(value, value * exp(-reach), value * exp(reach))


def student(values: Numbers, alpha: float) -> Interval | None:
    count = len(values)
    if count < 2:
        return None
    centre = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / count**0.5
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
    """Hodges–Lehmann centre with the exact signed-rank interval.

    None if so few values cannot reach alpha."""
    depth = _depth(signed_rank_distribution(len(values)), alpha)
    if depth == 0:
        return None
    averages = walsh_averages(values)
    return Interval(median(averages), float(averages[depth - 1]), float(averages[-depth]))


def signed_rank_p(values: Numbers) -> float:
    """Two-sided p-value of "the centre is 0": at most alpha if the interval excludes 0.

    Averages of 0 count against a difference, as they do for the interval."""
    first, second = pairs(len(values))
    averages = values[first] + values[second]
    beyond = max(np.count_nonzero(averages > 0), np.count_nonzero(averages < 0))
    smaller = len(averages) - beyond
    tail = signed_rank_distribution(len(values))[: smaller + 1]
    return min(1.0, 2 * float(tail.sum()))


def shift(first: Numbers, second: Numbers) -> float:
    """Hodges–Lehmann shift: how much the second lies above the first."""
    return float(np.median(np.subtract.outer(second, first)))


def mann_whitney(first: Numbers, second: Numbers, alpha: float) -> Interval | None:
    """Shift of the second against the first with its exact interval.

    None if so few values cannot reach alpha."""
    depth = _depth(mann_whitney_distribution(len(first), len(second)), alpha)
    if depth == 0:
        return None
    differences = np.sort(np.subtract.outer(second, first), axis=None)
    return Interval(median(differences), float(differences[depth - 1]), float(differences[-depth]))


@lru_cache(maxsize=256)
def signed_rank_distribution(count: int) -> Numbers:
    """Probabilities of the rank sums 0, 1, …: a fair coin decides whether each rank counts."""
    probabilities = np.ones(1)
    for rank in range(1, count + 1):
        without_rank = np.append(probabilities, np.zeros(rank))
        with_rank = np.append(np.zeros(rank), probabilities)
        probabilities = without_rank / 2 + with_rank / 2
    return probabilities


@lru_cache(maxsize=256)
def mann_whitney_distribution(first: int, second: int) -> Numbers:
    """Probabilities of U = 0, 1, …: coefficients of the Gaussian binomial.

    In integers, so that nothing cancels."""
    ways = [1] + [0] * (first * second)
    for rank in range(1, first + 1):
        far = second + rank
        # Multiply the polynomial by 1 − q^far. From the end, so that no factor is used twice.
        for i in range(len(ways) - 1, far - 1, -1):
            ways[i] -= ways[i - far]
        # Divide it by 1 − q^rank.
        for start in range(rank):
            ways[start::rank] = accumulate(ways[start::rank])
    total = sum(ways)
    return np.array([way / total for way in ways])


def _depth(probabilities: Numbers, alpha: float) -> int:
    """How many order statistics may be cut from each end: both tails stay within alpha."""
    return int(np.searchsorted(2 * np.cumsum(probabilities), alpha, side="right"))


def student_quantile(freedom: int, confidence: float = 0.95) -> float:
    """How many standard errors an interval of this confidence reaches to either side."""
    return float(stdtrit(freedom, (1 + confidence) / 2))
