"""Many comparisons at once: which differences to believe, and the mean ratio over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steptime.analysis import intervals
from steptime.analysis.compare import (
    INCONCLUSIVE,
    Comparison,
    Verdict,
    between_sessions,
    compare_records,
    process_logs,
)
from steptime.analysis.intervals import Interval
from steptime.analysis.quantiles import Numbers
from steptime.core.case import SETTINGS, Case
from steptime.core.record import Record

RESAMPLES = 2_000
# Of each side, for an interval of the mean over the suite.
LEAST_PROCESSES = 6
RecordPair = tuple[Record, Record]


@dataclass(frozen=True)
class Suite:
    # Of those called different, 5 % may be wrong.
    rows: tuple[Comparison, ...]
    mean: Verdict  # the geometric mean of the ratios


def match_records(first: Sequence[Record], second: Sequence[Record]) -> list[RecordPair]:
    """Pairs of measured cases that are equal except in the compared settings.

    A setting is compared if each side has a single value of it and the two differ."""
    a_records = [record for record in first if record.measurements]
    b_records = [record for record in second if record.measurements]
    compared = _compared_settings(a_records, b_records)
    partners = {_key(record.case, compared): record for record in b_records}
    pairs = []
    for record in a_records:
        partner = partners.get(_key(record.case, compared))
        if partner is not None:
            pairs.append((record, partner))
    return sorted(pairs, key=lambda pair: _key(pair[0].case, ()))


def _compared_settings(first: Sequence[Record], second: Sequence[Record]) -> list[str]:
    names = []
    for name in SETTINGS:
        a_values = {getattr(record.case, name) for record in first}
        b_values = {getattr(record.case, name) for record in second}
        if len(a_values) == len(b_values) == 1 and a_values != b_values:
            names.append(name)
    return names


def _key(case: Case, without: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(case, name) for name in SETTINGS if name not in without)


def compare_suite(pairs: Sequence[RecordPair]) -> Suite:
    """Two sessions, case by case.

    The machine's change between sessions is common to all cases: no mean averages it out."""
    comparisons = [compare_records(a, b) for a, b in pairs]
    p_values = []
    for comparison in comparisons:
        p = comparison.verdict.p
        p_values.append(1.0 if p is None else p)
    rows = []
    for comparison, believed in zip(comparisons, discoveries(p_values), strict=True):
        rows.append(comparison if believed else _without_discovery(comparison))
    mean = geometric_mean_ratio([_paired_log_ratios(a, b) for a, b in pairs])
    if min(comparison.units for comparison in comparisons) < LEAST_PROCESSES:
        return Suite(tuple(rows), Verdict(INCONCLUSIVE, mean.centre, None, None, None))
    log_mean = Interval(math.log(mean.centre), math.log(mean.low), math.log(mean.high))
    same_within = pairs[0][0].last.protocol.same_within
    return Suite(tuple(rows), between_sessions(log_mean, same_within))


def _paired_log_ratios(a: Record, b: Record) -> Numbers:
    """Processes paired in the order in which they ran."""
    first = process_logs(a)
    second = process_logs(b)
    return second[: len(first)] - first[: len(second)]


def _without_discovery(comparison: Comparison) -> Comparison:
    """Not believed among so many comparisons. "Same" is no discovery and stays."""
    if comparison.verdict.outcome == "likely same":
        return comparison
    return replace(comparison, verdict=replace(comparison.verdict, outcome=INCONCLUSIVE))


def discoveries(p_values: Sequence[float], share: float = 0.05) -> list[bool]:
    """Benjamini and Hochberg (1995): of the discoveries, at most this share is expected false."""
    order = np.argsort(p_values)
    count = len(p_values)
    discovered = 0
    for rank, index in enumerate(order, 1):
        if p_values[index] <= share * rank / count:
            discovered = rank
    believed = set(order[:discovered].tolist())
    return [index in believed for index in range(count)]


def geometric_mean_ratio(suite: Sequence[Numbers], *, seed: int = 0) -> Interval:
    """Geometric mean of the benchmarks' centres, from the log ratios of each one's pairs.

    The 95 % interval is a bootstrap over the pairs."""
    rng = np.random.default_rng(seed)
    centre = float(np.mean([intervals.typical(log_ratios) for log_ratios in suite]))
    resampled = np.mean([_resample_centres(log_ratios, rng) for log_ratios in suite], axis=0)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Interval(math.exp(centre), math.exp(low), math.exp(high))


def _resample_centres(log_ratios: Numbers, rng: np.random.Generator) -> Numbers:
    count = len(log_ratios)
    draws = log_ratios[rng.integers(count, size=(RESAMPLES, count))]
    first, second = intervals.pairs(count)
    centres: Numbers = np.median((draws[:, first] + draws[:, second]) / 2, axis=1)
    return centres
