"""Matched runs that were measured here: compared process by process, as `steptime compare` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log
from statistics import fmean
from typing import NamedTuple

from steptime.analysis.accuracy_loss import loss_sentence
from steptime.analysis.compare import LIKELY, Comparison, Verdict, invalid_reasons
from steptime.analysis.differences import differences, format_values
from steptime.analysis.estimates import typical_time
from steptime.analysis.session_deviation import machine_key, measured_attempts
from steptime.analysis.stopping import counted_processes
from steptime.analysis.stored import RecordPair, compare_stored
from steptime.core.record import Record
from steptime.index.matching import Facts, Pair, Table, match_rows, verdict_of
from steptime.index.rows import Row
from steptime.index.workspace import Workspace

# Each follows from the typical step time: as it, or as its inverse.
FROM_TIME = {"step_time": 1, "throughput": -1, "throughput_per_device": -1}
# Intervals of these hold within one session only.
WITHIN_SESSION = ("mean_time", "mean_speed")
# Their processes are read, which takes time. More get no verdict, and the page says so.
MOST_COMPARED = 500


class Ratio(NamedTuple):
    value: float
    low: float | None
    high: float | None


def compare_rows(workspace: Workspace, metric: str, a: list[Row], b: list[Row]) -> Table:
    """Pairs of results measured here have the verdict of a stored comparison.

    Results of other tools keep the ratio of their intervals."""
    table = match_rows(metric, a, b)
    own_pairs = [i for i, pair in enumerate(table.pairs) if _is_own(pair)]
    records = _records_by_position(workspace, table.pairs, own_pairs[:MOST_COMPARED])
    table = _without_verdict(table, own_pairs[MOST_COMPARED:])
    pairs = [_describe(pair, records.get(i)) for i, pair in enumerate(table.pairs)]
    compared = {i: records[i] for i in records if not pairs[i].refused}
    if metric not in FROM_TIME or not compared:
        if metric in WITHIN_SESSION:
            for i in compared:
                pairs[i] = replace(pairs[i], low=None, high=None, verdict="unknown")
        return replace(table, pairs=pairs)
    machines = {machine_key(measured_attempts(side)) for pair in compared.values() for side in pair}
    suite = compare_stored(list(compared.values()), workspace.session_history(machines))
    for i, row in zip(compared, suite.rows, strict=True):
        pairs[i] = _judge(metric, pairs[i], compared[i], row)
    deviations = dict.fromkeys(str(row.session_deviation) for row in suite.rows)
    mean = table.mean
    if len(compared) == len(pairs):
        mean = _mean(metric, table.pairs, compared, suite.mean)
    pairs.sort(key=lambda pair: pair.ratio)
    return replace(
        table, pairs=pairs, mean=mean, deviations=tuple(deviations), facts=_facts(compared)
    )


def _is_own(pair: Pair) -> bool:
    return {pair.a.get("source"), pair.b.get("source")} == {"steptime"}


def _without_verdict(table: Table, positions: Sequence[int]) -> Table:
    """Intervals of single results are too narrow for a comparison of two sessions."""
    pairs = list(table.pairs)
    for i in positions:
        pairs[i] = replace(pairs[i], low=None, high=None, verdict="unknown")
    return replace(table, pairs=pairs, unread=len(positions))


def _records_by_position(
    workspace: Workspace, pairs: Sequence[Pair], positions: Sequence[int]
) -> dict[int, RecordPair]:
    """Both sides of these pairs, if they were measured."""
    runs = workspace.find_runs([row["id"] for i in positions for row in (pairs[i].a, pairs[i].b)])
    records = {}
    for i in positions:
        a = runs.get(pairs[i].a["id"])
        b = runs.get(pairs[i].b["id"])
        if isinstance(a, Record) and isinstance(b, Record) and a.measurements and b.measurements:
            records[i] = (a, b)
    return records


def _describe(pair: Pair, records: RecordPair | None) -> Pair:
    """With what forbids a verdict, and with the cost of a lower precision."""
    if records is None:
        return pair
    a, b = (measured_attempts(record) for record in records)
    reasons = [*invalid_reasons(a), *invalid_reasons(b)]
    loss = loss_sentence(a, b)
    if not reasons:
        return replace(pair, accuracy_loss=loss)
    refused = "; ".join(reasons)
    return replace(
        pair, low=None, high=None, verdict="refused", refused=refused, accuracy_loss=loss
    )


def _facts(compared: Mapping[int, RecordPair]) -> Facts:
    """What differs besides the dimensions: the machine, its software, the environment."""
    a_attempts = [side for a, _ in compared.values() for side in measured_attempts(a)]
    b_attempts = [side for _, b in compared.values() for side in measured_attempts(b)]
    # The dimensions have the framework's version already.
    frameworks = {attempt.case.framework for attempt in (*a_attempts, *b_attempts)}
    facts = {}
    for group, differing in differences(a_attempts, b_attempts).items():
        if group == "settings":
            continue
        for name, (first, second) in differing.items():
            if name not in frameworks:
                facts[f"{group}: {name}"] = (format_values(first), format_values(second))
    return facts


def _judge(metric: str, pair: Pair, records: RecordPair, row: Comparison) -> Pair:
    ratio = _convert(row.verdict, _per_time(metric, pair, records), FROM_TIME[metric])
    verdict = verdict_of(metric, ratio.low, ratio.high)
    if verdict in ("better", "worse"):
        verdict = f"{LIKELY}{verdict}"
    return replace(
        pair,
        ratio=ratio.value,
        low=ratio.low,
        high=ratio.high,
        verdict=verdict,
        level=row.verdict.level or pair.level,
    )


def _per_time(metric: str, pair: Pair, records: RecordPair) -> float:
    """The metric's ratio over that of the times: 1, unless the sides have different batches."""
    a, b = (typical_time(counted_processes(record.attempts)).value for record in records)
    return pair.ratio / (b / a) ** FROM_TIME[metric]


def _convert(verdict: Verdict, factor: float, power: int) -> Ratio:
    """From times to a metric that is proportional to them, or to their inverse."""
    value = factor * verdict.ratio**power
    if verdict.low is None or verdict.high is None:
        return Ratio(value, None, None)
    low, high = sorted((factor * verdict.low**power, factor * verdict.high**power))
    return Ratio(value, low, high)


def _mean(
    metric: str, pairs: Sequence[Pair], records: Mapping[int, RecordPair], mean: Verdict
) -> Ratio:
    factors = [_per_time(metric, pairs[i], records[i]) for i in records]
    return _convert(mean, exp(fmean(map(log, factors))), FROM_TIME[metric])
