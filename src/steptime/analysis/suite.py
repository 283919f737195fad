"""Many comparisons at once: which differences to believe, and how two sides compare over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from steptime.analysis import intervals
from steptime.analysis.intervals import Interval
from steptime.analysis.quantiles import Numbers

RESAMPLES = 2_000


def discoveries(p_values: Sequence[float], share: float = 0.05) -> list[bool]:
    """Benjamini and Hochberg (1995): of those called different, at most this share is expected to be wrong."""
    order = np.argsort(p_values)
    count = len(p_values)
    passes = [rank for rank, place in enumerate(order, 1) if p_values[place] <= share * rank / count]
    believed = set(order[: max(passes, default=0)].tolist())
    return [place in believed for place in range(count)]


def geometric_mean_ratio(suite: Sequence[Numbers], *, seed: int = 0) -> Interval:
    """Of the benchmarks' centres, given the log ratios of each one's pairs; 95 % by drawing pairs again."""
    dice = np.random.default_rng(seed)
    centre = float(np.mean([intervals.typical(log_ratios) for log_ratios in suite]))
    drawn = np.mean([_resampled(log_ratios, dice) for log_ratios in suite], axis=0)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(math.exp(centre), math.exp(low), math.exp(high))


def _resampled(log_ratios: Numbers, dice: np.random.Generator) -> Numbers:
    count = len(log_ratios)
    draws = log_ratios[dice.integers(count, size=(RESAMPLES, count))]
    first, second = intervals.pairs(count)
    centres: Numbers = np.median((draws[:, first] + draws[:, second]) / 2, axis=1)
    return centres
