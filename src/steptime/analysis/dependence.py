"""How alike successive processes are, and how much wider that makes the interval of their centre.

The processes of a case that runs alone follow each other, so they share the state of the machine.
Those of several cases in random order are spaced by the processes of the other cases."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from steptime.analysis import intervals
from steptime.analysis.autocorrelation import rank_lag_one
from steptime.analysis.intervals import Interval
from steptime.analysis.quantiles import Numbers
from steptime.core.record import Attempt

# Correlation of two processes of which one directly follows the other, at most. Recorded sessions
# of one case reach 0.65: docs/results/coverage.md.
MOST_CORRELATION = 0.8
# The correlation within a session is known badly: so many standard errors are added to it.
STANDARD_ERRORS = 3.5


def most_correlation(attempts: Sequence[Attempt]) -> float:
    """At most so much do neighbours in this sequence correlate: less if others ran in between.

    An attempt that does not know its number in the session counts as successive."""
    numbers = [attempt.environment.get("session_process") for attempt in attempts]
    bounds = []
    for number, following in pairwise(numbers):
        spacing = 1
        if number is not None and following is not None:
            spacing = max(1, abs(following - number))
        bounds.append(MOST_CORRELATION**spacing)
    return float(np.mean(bounds)) if bounds else MOST_CORRELATION


def widening(values: Numbers, most: float = MOST_CORRELATION) -> float:
    """By this factor the interval of independent values must grow.

    The standard error of a mean grows by √((1 + ρ) / (1 − ρ)) if neighbours correlate by ρ. Here ρ
    is the correlation seen plus its error, but at most `most`: a few values say little about it."""
    seen = rank_lag_one(values) + STANDARD_ERRORS / len(values) ** 0.5
    correlation = min(max(seen, 0.0), most)
    return float(((1 + correlation) / (1 - correlation)) ** 0.5)


def typical_interval(values: Numbers, alpha: float, factor: float) -> Interval | None:
    """Signed-rank interval of positive values, widened by this factor on a log scale.

    So no end falls below zero. None for fewer than six values."""
    interval = intervals.signed_rank(values, alpha)
    if interval is None:
        return None
    centre = interval.centre
    low = centre * (interval.low / centre) ** factor
    high = centre * (interval.high / centre) ** factor
    return Interval(centre, low, high)
