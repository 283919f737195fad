"""Stored results against each other: one pair, or two sessions case by case.

The command line, the guide and the report all show what `compare_stored` says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steptime.analysis import intervals
from steptime.analysis.compare import (
    ALPHA,
    INCONCLUSIVE,
    LIKELY,
    Comparison,
    Verdict,
    make_verdict,
    outcome_of,
)
from steptime.analysis.intervals import Interval
from steptime.analysis.quantiles import Numbers
from steptime.analysis.session_deviation import (
    SessionPair,
    SessionValue,
    compare_sessions,
    process_logs,
)
from steptime.core.case import SETTINGS, Case
from steptime.core.record import Record

# Of one side, for any interval: no ratio could decide.
TOO_FEW = "too_few_processes"
NOT_INTERLEAVED = "not_interleaved"
BISECTIONS = 40
RecordPair = tuple[Record, Record]
# The interval of a log ratio at an alpha. None if there are too few processes for it.
IntervalAt = Callable[[float], Interval | None]


@dataclass(frozen=True)
class Suite:
    # Of those called different, 5 % may be wrong.
    rows: tuple[Comparison, ...]
    mean: Verdict  # the geometric mean of the rows' ratios


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


def compare_records(a: Record, b: Record, history: Sequence[SessionValue] = ()) -> Comparison:
    """A single case."""
    return compare_stored([(a, b)], history).rows[0]


def compare_stored(pairs: Sequence[RecordPair], history: Sequence[SessionValue] = ()) -> Suite:
    """Case by case. A verdict is at most "likely", because the machine may have changed.

    `history` tells by how much machines differ from session to session."""
    sessions = [compare_sessions(a, b, history) for a, b in pairs]
    logs = [(process_logs(a), process_logs(b)) for a, b in pairs]
    shifts = [_shift_at(first, second) for first, second in logs]
    centres = [intervals.shift(first, second) for first, second in logs]
    same_within = pairs[0][0].last.protocol.same_within
    widened = [_widen(shift_at, pair) for shift_at, pair in zip(shifts, sessions, strict=True)]
    p_values = adjust_p_values([_p_value(interval_at) for interval_at in widened])
    # With this alpha the interval of a row excludes 1 if, and only if, the row is believed.
    believed = sum(p is not None and p <= ALPHA for p in p_values)
    alpha = ALPHA * max(believed, 1) / len(pairs)
    rows = []
    for i, interval_at in enumerate(widened):
        verdict = _verdict(interval_at, centres[i], p_values[i], alpha, same_within)
        counts = (len(logs[i][0]), len(logs[i][1]))
        rows.append(_comparison(verdict, counts, sessions[i]))
    # The change between sessions is common to all cases: no mean averages it out.
    widest = max(sessions, key=lambda session_pair: session_pair.reach(ALPHA))
    mean_at = _widen(_mean_at(shifts), widest)
    mean = _verdict(mean_at, float(np.mean(centres)), _p_value(mean_at), ALPHA, same_within)
    return Suite(tuple(rows), mean)


def _comparison(verdict: Verdict, counts: tuple[int, int], sessions: SessionPair) -> Comparison:
    remarks = []
    if verdict.p is None:
        remarks.append(TOO_FEW)
    if sessions.a is not None:
        remarks.append(NOT_INTERLEAVED)
    return Comparison(
        verdict=verdict,
        units=min(counts),
        processes=counts,
        paired=False,
        session_deviation=sessions,
        remarks=tuple(remarks),
    )


def _shift_at(first: Numbers, second: Numbers) -> IntervalAt:
    return lambda alpha: intervals.mann_whitney(first, second, alpha)


def _mean_at(shifts: Sequence[IntervalAt]) -> IntervalAt:
    """Of the mean of several shifts, whose errors are independent."""

    def interval_at(alpha: float) -> Interval | None:
        rows = []
        for shift_at in shifts:
            row = shift_at(alpha)
            if row is None:
                return None
            rows.append(row)
        centre = float(np.mean([row.centre for row in rows]))
        down = math.hypot(*(row.centre - row.low for row in rows)) / len(rows)
        up = math.hypot(*(row.high - row.centre for row in rows)) / len(rows)
        return Interval(centre, centre - down, centre + up)

    return interval_at


def _widen(interval_at: IntervalAt, sessions: SessionPair) -> IntervalAt:
    """With the change between sessions. Independent errors add in squares."""

    def widened_at(alpha: float) -> Interval | None:
        interval = interval_at(alpha)
        if interval is None:
            return None
        reach = sessions.reach(alpha)
        down = math.hypot(interval.centre - interval.low, reach)
        up = math.hypot(interval.high - interval.centre, reach)
        return Interval(interval.centre, interval.centre - down, interval.centre + up)

    return widened_at


def _p_value(interval_at: IntervalAt) -> float | None:
    """The smallest alpha at which the interval excludes 0. None if none is narrow enough.

    Bisected from the alpha that decides, so that p-value and interval agree."""
    interval = interval_at(ALPHA)
    if interval is None:
        return None
    low, high = (0.0, ALPHA) if _excludes_zero(interval) else (ALPHA, 1.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _excludes_zero(interval_at(middle)):
            high = middle
        else:
            low = middle
    return high


def _excludes_zero(interval: Interval | None) -> bool:
    return interval is not None and (interval.low > 0 or interval.high < 0)


def _verdict(
    interval_at: IntervalAt, centre: float, p: float | None, alpha: float, same_within: float
) -> Verdict:
    interval = interval_at(alpha)
    if interval is None:
        return Verdict(INCONCLUSIVE, math.exp(centre), p=p)
    outcome = outcome_of(interval, same_within)
    if outcome != INCONCLUSIVE:
        outcome = f"{LIKELY}{outcome}"
    return make_verdict(outcome, interval, p, alpha=ALPHA, level=1 - alpha)


def adjust_p_values(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg (1995): of those at most alpha, this share is expected false.

    A case without a p-value is one of the comparisons all the same."""
    if not p_values:
        return []
    # scipy.stats takes half a second to import, and only lists of comparisons need it.
    from scipy.stats import false_discovery_control

    adjusted = false_discovery_control([1.0 if p is None else p for p in p_values])
    return [
        None if p is None else float(value) for p, value in zip(p_values, adjusted, strict=True)
    ]
