from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factories import make_attempt, make_record, make_times
from steptime.analysis.session_deviation import ASSUMED, SessionValue, machine_key
from steptime.analysis.stored import (
    TOO_FEW,
    adjust_p_values,
    compare_records,
    compare_stored,
    match_records,
)
from steptime.core.cause import Cause
from steptime.core.record import Failure, Record


def test_adjust_p_values_match_benjamini_and_hochberg() -> None:
    """Their example of thrombolysis (1995) rejects the first four of these fifteen at 0.05."""
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p_values += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    expected = [0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.06385714, 0.06385714, 0.0645, 0.0765]
    expected += [0.486, 0.58118182, 0.714875, 0.75323077, 0.81321429, 1.0]
    assert adjust_p_values(p_values) == pytest.approx(expected)


def test_adjust_p_values_ignore_the_order_of_benchmarks() -> None:
    assert adjust_p_values([0.9, 0.001, 0.5]) == pytest.approx([0.9, 0.003, 0.75])
    assert adjust_p_values([]) == []


def test_adjust_p_values_count_cases_without_one() -> None:
    assert adjust_p_values([0.01, None]) == [0.02, None]


def session_of(
    make: Callable[..., Record], seed: int, mode: str, sizes: Sequence[int], slower: float = 1.0
) -> list[Record]:
    """A case for each batch size; those of 1 are slower by this factor."""
    return [
        make(
            seed + size, mode=mode, batch_size=size, centre_ns=1e6 * (slower if size == 1 else 1.0)
        )
        for size in sizes
    ]


@pytest.fixture
def make() -> Callable[..., Record]:
    def record(seed: int, *, centre_ns: float, processes: int = 8, **settings: Any) -> Record:
        times = (make_times(100 * seed + p, centre_ns=centre_ns) for p in range(processes))
        return Record(
            attempts=tuple(
                make_attempt(row, process=p, id=str(p), **settings) for p, row in enumerate(times)
            )
        )

    return record


def test_match_records_ignores_the_compared_setting(make: Callable[..., Record]) -> None:
    pairs = match_records(
        session_of(make, 1, "eager", (1, 8, 32)), session_of(make, 50, "compiled", (8, 32, 64))
    )
    assert [(a.case.batch_size, b.case.batch_size) for a, b in pairs] == [(8, 8), (32, 32)]


def test_match_records_pairs_equal_plans_case_by_case(make: Callable[..., Record]) -> None:
    assert (
        len(
            match_records(
                session_of(make, 1, "eager", (1, 8)), session_of(make, 50, "eager", (1, 8))
            )
        )
        == 2
    )


def test_match_records_skips_failed_records(make: Callable[..., Record]) -> None:
    first, second = session_of(make, 1, "eager", (1, 8)), session_of(make, 50, "eager", (1, 8))
    failed = replace(
        second[0].last, measurement=None, failure=Failure(cause=Cause.CRASHED, reason="x")
    )
    assert len(match_records(first, [Record(attempts=(failed,)), second[1]])) == 1


def test_compare_stored_has_a_verdict_per_row_and_a_mean(make: Callable[..., Record]) -> None:
    sizes = (1, 8, 32, 64)
    found = compare_stored(
        match_records(
            session_of(make, 1, "eager", sizes), session_of(make, 90, "compiled", sizes, 1.5)
        )
    )
    assert [row.verdict.outcome for row in found.rows] == ["likely slower", *["inconclusive"] * 3]
    assert (
        found.mean.ratio == pytest.approx(1.5**0.25, rel=0.01)
        and found.mean.low < 1.5**0.25 < found.mean.high
    )


def test_compare_stored_keeps_the_change_between_sessions(make: Callable[..., Record]) -> None:
    sizes = (2, 4, 8, 16, 32, 64)
    mean = compare_stored(
        match_records(session_of(make, 1, "eager", sizes), session_of(make, 90, "eager", sizes))
    ).mean
    assert math.log(mean.high / mean.low) > 2 * 1.96 * math.sqrt(2) * ASSUMED


def test_compare_stored_has_no_mean_interval_for_few_processes(make: Callable[..., Record]) -> None:
    few = [make(seed, centre_ns=1e6, processes=3) for seed in (1, 2)]
    found = compare_stored([(few[0], few[1])])
    assert found.mean.low is None and found.rows[0].verdict.outcome == "inconclusive"


def test_compare_stored_corrects_for_many_comparisons(
    make: Callable[..., Record],
) -> None:
    sizes = (1, *range(2, 30))
    pairs = match_records(
        session_of(make, 1, "eager", sizes), session_of(make, 90, "compiled", sizes, 1.25)
    )
    assert compare_stored(pairs[:1]).rows[0].verdict.outcome == "likely slower"
    assert compare_stored(pairs).rows[0].verdict.outcome == "inconclusive"


def of_session(seed: int, session: str, level: float = 1.0, processes: int = 8) -> Record:
    attempts = []
    for process in range(processes):
        times = make_times(100 * seed + process, centre_ns=1e6 * level)
        attempts.append(make_attempt(times, process=process, session=session, id=str(process)))
    return Record(attempts=tuple(attempts))


def steady_history(record: Record, sd: float, sessions: int = 20) -> list[SessionValue]:
    machine = machine_key(record.attempts)
    signs = [sd * (-1) ** i for i in range(sessions)]
    return [SessionValue(machine, "w", f"s{i}", value) for i, value in enumerate(signs)]


def test_compare_records_is_at_most_likely() -> None:
    found = compare_records(of_session(1, "a"), of_session(2, "b", 1.5))
    assert found.verdict.outcome == "likely slower" and "not_interleaved" in found.remarks


def test_compare_records_calls_nothing_likely_that_sessions_explain() -> None:
    a, b = of_session(1, "a"), of_session(2, "b", 1.15)
    assert compare_records(a, b).verdict.outcome == "inconclusive"


def test_compare_records_learns_from_a_quiet_machine() -> None:
    a, b = of_session(1, "a"), of_session(2, "b", 1.06)
    assert compare_records(a, b).verdict.outcome == "inconclusive"
    found = compare_records(a, b, steady_history(a, 0.002))
    assert found.verdict.outcome == "likely slower"
    assert "learned from 20 sessions" in str(found.session_deviation)


def test_compare_records_learns_from_a_restless_machine() -> None:
    a, b = of_session(1, "a"), of_session(2, "b", 1.5)
    assert compare_records(a, b, steady_history(a, 0.2)).verdict.outcome == "inconclusive"


def test_compare_records_is_inconclusive_for_few_processes() -> None:
    found = compare_records(make_record(1, processes=2), make_record(2, processes=2))
    assert (found.verdict.outcome, found.verdict.low) == ("inconclusive", None)
    assert TOO_FEW in found.remarks
    assert TOO_FEW not in compare_records(make_record(1), make_record(2)).remarks


def test_compare_records_counts_processes_not_pairs() -> None:
    found = compare_records(of_session(1, "a", processes=8), of_session(2, "b", processes=6))
    assert (found.processes, found.units, found.paired) == ((8, 6), 6, False)


@pytest.mark.parametrize("cases", [1, 12])
def test_compare_stored_agrees_with_its_p_values_and_intervals(cases: int) -> None:
    rng = np.random.default_rng(cases)
    outcomes = set()
    for trial in range(120 // cases):
        pairs = []
        for case in range(cases):
            seed = 1000 * trial + 10 * case
            pairs.append((of_session(seed, "a"), of_session(seed + 1, "b", rng.uniform(0.9, 1.15))))
        for row in compare_stored(pairs, steady_history(pairs[0][0], 0.01)).rows:
            verdict = row.verdict
            outcomes.add(verdict.outcome)
            assert verdict.low is not None and verdict.high is not None and verdict.p is not None
            differs = verdict.outcome in ("likely faster", "likely slower")
            assert differs == (verdict.low > 1 or verdict.high < 1) == (verdict.p <= verdict.alpha)
    assert {"likely slower", "inconclusive"} <= outcomes


def test_compare_stored_tells_the_level_of_its_intervals() -> None:
    pairs = [(of_session(i, "a"), of_session(90 + i, "b")) for i in range(4)]
    rows = compare_stored(pairs).rows
    assert [row.verdict.level for row in rows] == [pytest.approx(1 - 0.05 / 4)] * 4
    assert compare_stored(pairs[:1]).rows[0].verdict.level == 0.95


def test_compare_stored_mean_is_that_of_its_rows() -> None:
    """Also if sides have different numbers of processes."""
    pairs = [
        (of_session(1, "a", processes=8), of_session(2, "b", 1.2, processes=12)),
        (of_session(3, "a", processes=12), of_session(4, "b", 0.9, processes=6)),
    ]
    suite = compare_stored(pairs)
    ratios = [row.verdict.ratio for row in suite.rows]
    assert suite.mean.ratio == pytest.approx(math.sqrt(math.prod(ratios)), rel=1e-12)


def test_compare_stored_mean_of_one_case_is_its_row() -> None:
    suite = compare_stored([(of_session(1, "a"), of_session(2, "b", 1.3))])
    assert suite.mean == suite.rows[0].verdict
