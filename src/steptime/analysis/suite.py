"""Many comparisons at once: which differences to believe, and how two sides compare over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steptime.analysis import intervals
from steptime.analysis.compare import Comparison, Verdict, between_sessions, process_logs, stored
from steptime.analysis.intervals import Interval
from steptime.analysis.quantiles import Numbers
from steptime.core.case import SETTINGS, Case
from steptime.core.record import Record

RESAMPLES = 2_000
LEAST_PROCESSES = 6  # of each side, for an interval of the mean over the suite
RecordPair = tuple[Record, Record]


@dataclass(frozen=True)
class Suite:
    rows: tuple[
        Comparison, ...
    ]  # their words hold together: of those called different 5 % may be wrong
    mean: Verdict  # the geometric mean of the ratios


def matched(first: Sequence[Record], second: Sequence[Record]) -> list[RecordPair]:
    """Measured cases that are equal but for what is compared: settings with one value on each side, not the same."""
    sides = [[record for record in side if record.measurements] for side in (first, second)]
    values = [
        {name: {getattr(record.case, name) for record in side} for name in SETTINGS}
        for side in sides
    ]
    compared = [
        n
        for n in SETTINGS
        if len(values[0][n]) == len(values[1][n]) == 1 and values[0][n] != values[1][n]
    ]
    partners = {_key(record.case, compared): record for record in sides[1]}
    keyed = [(record, partners.get(_key(record.case, compared))) for record in sides[0]]
    found = [(record, partner) for record, partner in keyed if partner is not None]
    return sorted(found, key=lambda pair: _key(pair[0].case, ()))


def _key(case: Case, without: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(case, name) for name in SETTINGS if name not in without)


def stored_suite(pairs: Sequence[RecordPair]) -> Suite:
    """Two sessions, case by case. The machine's change between them is common to all cases: no mean averages it out."""
    rows = [stored(a, b) for a, b in pairs]
    believed = discoveries([1.0 if row.verdict.p is None else row.verdict.p for row in rows])
    told = tuple(row if sure else _doubted(row) for row, sure in zip(rows, believed, strict=True))
    logs = [(process_logs(a), process_logs(b)) for a, b in pairs]
    mean = geometric_mean_ratio(
        [b[: len(a)] - a[: len(b)] for a, b in logs]
    )  # processes paired as they ran
    if min(row.units for row in rows) < LEAST_PROCESSES:
        return Suite(told, Verdict("inconclusive", mean.centre, None, None, None))
    log_mean = Interval(math.log(mean.centre), math.log(mean.low), math.log(mean.high))
    return Suite(told, between_sessions(log_mean, pairs[0][0].last.protocol.same_within))


def _doubted(row: Comparison) -> Comparison:
    """Not believed among so many; "same" is no discovery and stays."""
    same = row.verdict.word == "likely same"
    return row if same else replace(row, verdict=replace(row.verdict, word="inconclusive"))


def discoveries(p_values: Sequence[float], share: float = 0.05) -> list[bool]:
    """Benjamini and Hochberg (1995): of those called different, at most this share is expected to be wrong."""
    order = np.argsort(p_values)
    count = len(p_values)
    passes = [
        rank for rank, place in enumerate(order, 1) if p_values[place] <= share * rank / count
    ]
    believed = set(order[: max(passes, default=0)].tolist())
    return [place in believed for place in range(count)]


def geometric_mean_ratio(suite: Sequence[Numbers], *, seed: int = 0) -> Interval:
    """Of the benchmarks' centres, given the log ratios of each one's pairs; 95 % by drawing pairs again."""
    rng = np.random.default_rng(seed)
    centre = float(np.mean([intervals.typical(log_ratios) for log_ratios in suite]))
    drawn = np.mean([_resampled(log_ratios, rng) for log_ratios in suite], axis=0)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(math.exp(centre), math.exp(low), math.exp(high))


def _resampled(log_ratios: Numbers, rng: np.random.Generator) -> Numbers:
    count = len(log_ratios)
    draws = log_ratios[rng.integers(count, size=(RESAMPLES, count))]
    first, second = intervals.pairs(count)
    centres: Numbers = np.median((draws[:, first] + draws[:, second]) / 2, axis=1)
    return centres
