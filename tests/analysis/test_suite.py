from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from factories import make_attempt, make_times
from steptime.analysis.compare import SESSION_SD
from steptime.analysis.suite import compare_suite, discoveries, geometric_mean_ratio, match_records
from steptime.core.cause import Cause
from steptime.core.record import Failure, Record


def test_discoveries_match_benjamini_and_hochberg() -> None:
    p_values = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]
    assert discoveries(p_values) == (stats.false_discovery_control(p_values) <= 0.05).tolist()
    assert sum(discoveries(p_values)) == 2


def test_discoveries_ignore_the_order_of_benchmarks() -> None:
    assert discoveries([0.9, 0.001, 0.5]) == [False, True, False]
    assert discoveries([]) == []


def test_discoveries_include_larger_p_values_below_a_later_threshold() -> None:
    assert discoveries([0.02, 0.03, 0.04, 0.049]) == [True] * 4


def test_geometric_mean_ratio_has_an_interval() -> None:
    rng = np.random.default_rng(1)
    suite = [math.log(ratio) + 0.01 * rng.standard_normal(12) for ratio in (0.5, 2.0, 1.21)]
    found = geometric_mean_ratio(suite)
    assert found.centre == pytest.approx(1.21 ** (1 / 3), rel=0.01)
    assert found.low < 1.21 ** (1 / 3) < found.high
    assert found.half_width < 0.01


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


def test_compare_suite_has_a_verdict_per_row_and_a_mean(make: Callable[..., Record]) -> None:
    sizes = (1, 8, 32, 64)
    found = compare_suite(
        match_records(
            session_of(make, 1, "eager", sizes), session_of(make, 90, "compiled", sizes, 1.5)
        )
    )
    assert [row.verdict.outcome for row in found.rows] == ["likely slower", *["inconclusive"] * 3]
    assert (
        found.mean.ratio == pytest.approx(1.5**0.25, rel=0.01)
        and found.mean.low < 1.5**0.25 < found.mean.high
    )


def test_compare_suite_keeps_the_change_between_sessions(make: Callable[..., Record]) -> None:
    sizes = (2, 4, 8, 16, 32, 64)
    mean = compare_suite(
        match_records(session_of(make, 1, "eager", sizes), session_of(make, 90, "eager", sizes))
    ).mean
    assert math.log(mean.high / mean.low) > 2 * 1.96 * math.sqrt(2) * SESSION_SD


def test_compare_suite_has_no_mean_interval_for_few_processes(make: Callable[..., Record]) -> None:
    few = [make(seed, centre_ns=1e6, processes=3) for seed in (1, 2)]
    found = compare_suite([(few[0], few[1])])
    assert found.mean.low is None and found.rows[0].verdict.outcome == "inconclusive"


def test_compare_suite_corrects_for_many_comparisons(
    make: Callable[..., Record],
) -> None:
    sizes = (1, *range(2, 30))
    pairs = match_records(
        session_of(make, 1, "eager", sizes), session_of(make, 90, "compiled", sizes, 1.105)
    )
    assert compare_suite(pairs[:1]).rows[0].verdict.outcome == "likely slower"
    assert compare_suite(pairs).rows[0].verdict.outcome == "inconclusive"
