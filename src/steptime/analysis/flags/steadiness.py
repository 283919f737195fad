"""Tests of whether the order of numbers matters: drift, level shifts, correlation, two groups.

Steps of one process resemble their neighbours, so a change is tested after the correlation of
neighbouring points (`memory`) is taken out. Otherwise slow noise would look like drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr

from steptime.analysis import intervals
from steptime.analysis.autocorrelation import lag_one
from steptime.analysis.quantiles import Numbers, ranks
from steptime.core.protocol import ROBUST

PERMUTATIONS = 9_999
# Fewer points are not tested.
LEAST_POINTS = 6
# A step is removed only if enough points are left to see the memory.
LEAST_POINTS_FOR_STEP = 20
MOST_MEMORY = 0.95
# Of a change that processes share. Student's p may be larger than Stouffer's by this ratio.
LEAST_PROCESSES = 3
COMMON_RATIO = 0.1
# Points farther from their level are clipped, in robust standard deviations.
CLIP = 3.0
# A gap counts if it is so many times as wide as the next widest one.
GAP_RATIO = 3


@dataclass(frozen=True)
class Trend:
    """A change inside one process, with the p-value of a permutation test."""

    change: float  # relative
    p: float
    position: int = 0  # the first point after the change


def memory(courses: Sequence[Numbers]) -> float:
    """Correlation of neighbouring points inside a process, 0 … 0.95: the median over processes.

    A step is removed first: one change of level must not look like memory. What that and the
    mean hide of the correlation in a short series is added again, by simulated AR(1) series."""
    estimates = []
    for medians in courses:
        count = len(medians)
        if count < LEAST_POINTS:
            continue
        logs = np.log(medians)
        if count >= LEAST_POINTS_FOR_STEP:
            correlation = lag_one(_clipped(_without_step(logs)))
            estimates.append(correlation + (4 + 10 * correlation) / count)
        else:
            correlation = lag_one(_clipped(logs - np.median(logs)))
            estimates.append(correlation + (1 + 6 * correlation) / count)
    if not estimates:
        return 0.0
    return float(np.clip(np.median(estimates), 0.0, MOST_MEMORY))


def _without_step(logs: Numbers) -> Numbers:
    position = int(np.argmax(_cumulative_sums(ranks(logs)[None, :])[0])) + 2
    levels = np.full(len(logs), np.median(logs[position:]))
    levels[:position] = np.median(logs[:position])
    residuals: Numbers = logs - levels
    return residuals


def _clipped(residuals: Numbers) -> Numbers:
    """Single wild points would hide the correlation of the others."""
    reach = CLIP * ROBUST * float(np.median(np.abs(residuals)))
    clipped: Numbers = np.clip(residuals, -reach, reach)
    return clipped


def _whitened(logs: Numbers, correlation: float) -> Numbers:
    """Independent if the series is AR(1), so that a permutation test holds."""
    centred = logs - np.median(logs)
    whitened: Numbers = np.append(
        math.sqrt(1 - correlation**2) * centred[0], centred[1:] - correlation * centred[:-1]
    )
    return whitened


def drift(medians: Numbers, correlation: float = 0.0) -> Trend | None:
    """Last third against first third, with a permutation test of the ranks.

    The change is the Hodges–Lehmann shift of the logarithms, so none is below −100 %."""
    count = len(medians)
    if count < LEAST_POINTS:
        return None
    third = count // 3
    logs = np.log(medians)
    change = math.expm1(intervals.shift(logs[:third], logs[-third:]))
    order = ranks(_whitened(logs, correlation))
    statistic = abs(float(order @ _thirds(count)))
    return Trend(change, _share_beyond(_drift_null(count), statistic))


def level_shift(medians: Numbers, correlation: float = 0.0) -> Trend | None:
    """The largest standardised cumulative sum of the ranks, with a permutation test."""
    count = len(medians)
    if count < LEAST_POINTS:
        return None
    sums = _cumulative_sums(ranks(_whitened(np.log(medians), correlation))[None, :])[0]
    position = int(np.argmax(sums)) + 2
    before = np.median(medians[:position])
    after = np.median(medians[position:])
    p = _share_beyond(_shift_null(count), float(sums.max()))
    return Trend(float(after / before) - 1, p, position)


def _thirds(count: int) -> Numbers:
    weights = np.zeros(count)
    weights[: count // 3] = -1
    weights[-(count // 3) :] = 1
    return weights


@lru_cache(maxsize=64)
def _drift_null(count: int) -> Numbers:
    """The statistic of ranks in random order. It depends on their number alone."""
    null: Numbers = np.abs(_orders(count) @ _thirds(count))
    return null


@lru_cache(maxsize=64)
def _shift_null(count: int) -> Numbers:
    null: Numbers = _cumulative_sums(_orders(count).astype(float)).max(axis=1)
    return null


def common_trend(trends: Sequence[Trend]) -> Trend | None:
    """A change that most processes share: warm-up that goes on. None for fewer than three.

    Each p becomes a normal score with the sign of its change. Their sum must be large (Stouffer),
    and so must it be beside their spread (Student): this holds even if `memory` is too small."""
    count = len(trends)
    if count < LEAST_PROCESSES:
        return None
    changes = np.array([trend.change for trend in trends])
    scores = np.sign(changes) * ndtri(1 - np.array([trend.p for trend in trends]) / 2)
    stouffer_p = 2 * ndtr(-abs(float(scores.sum())) / math.sqrt(count))
    spread = max(float(scores.std(ddof=1)), 1e-9)
    student_p = 2 * stdtr(count - 1, -abs(float(scores.mean())) * math.sqrt(count) / spread)
    return Trend(float(np.median(changes)), float(max(stouffer_p, COMMON_RATIO * student_p)))


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
