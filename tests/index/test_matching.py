"""Which runs of two sides are the same configuration, and what their ratio says."""

from __future__ import annotations

from typing import Any

import pytest

from steptime.index.matching import geometric_mean, match_rows


def row(
    framework: str, batch: int, speed: float, width: float | None = 0.01, **more: Any
) -> dict[str, Any]:
    ends = (
        {}
        if width is None
        else {"throughput_low": speed * (1 - width), "throughput_high": speed * (1 + width)}
    )
    return {
        "id": f"{framework}{batch}{speed}",
        "framework": framework,
        "replica_batch": batch,
        "throughput": speed,
        **ends,
        **more,
    }


def test_match_rows_pairs_only_equal_configurations() -> None:
    table = match_rows(
        "throughput", [row("a", 1, 10), row("a", 2, 10)], [row("b", 1, 20), row("b", 4, 20)]
    )
    assert [(pair.a["replica_batch"], pair.ratio) for pair in table.pairs] == [(1, 2.0)]
    assert (table.only_a, table.only_b, list(table.differs)) == (1, 1, ["framework"])


def test_match_rows_takes_the_best_run_of_a_configuration() -> None:
    table = match_rows("throughput", [row("a", 1, 10), row("a", 1, 12)], [row("b", 1, 24)])
    assert [pair.ratio for pair in table.pairs] == [2.0]


def test_match_rows_is_inconclusive_if_the_interval_holds_one() -> None:
    (pair,) = match_rows("throughput", [row("a", 1, 10, 0.1)], [row("b", 1, 10.5, 0.1)]).pairs
    assert pair.verdict == "same or inconclusive" and pair.low < 1 < pair.high


def test_match_rows_judges_less_time_as_better() -> None:
    rows = [
        {
            **row(name, 1, 1),
            "step_time": time,
            "step_time_low": time * 0.99,
            "step_time_high": time * 1.01,
        }
        for name, time in (("a", 1.0), ("b", 0.5))
    ]
    (pair,) = match_rows("step_time", rows[:1], rows[1:]).pairs
    assert pair.verdict == "better"


def test_match_rows_claims_nothing_without_an_interval() -> None:
    (pair,) = match_rows("throughput", [row("a", 1, 10, None)], [row("b", 1, 20)]).pairs
    assert (pair.low, pair.verdict) == (None, "unknown")


def test_match_rows_reports_different_models_as_different_work() -> None:
    table = match_rows("throughput", [row("a", 1, 10, model="m")], [row("a", 1, 10, model="n")])
    assert table.different_work == ["model"]


def test_match_rows_leaves_out_zero() -> None:
    assert match_rows("throughput", [row("a", 1, 0.0)], [row("b", 1, 1.0)]).pairs == []


def test_geometric_mean_of_opposite_ratios_is_one() -> None:
    mean, low, high = geometric_mean([2.0, 0.5]) or (0, 0, 0)
    assert mean == pytest.approx(1) and low is not None and high is not None and low < 1 < high
    assert geometric_mean([3.0]) == (pytest.approx(3.0), None, None) and geometric_mean([]) is None


def test_match_rows_takes_the_best_of_each_side_if_the_batch_differs() -> None:
    rows = [row("a", 1, 30), row("a", 2, 10)]
    for side in (rows, rows[::-1]):
        table = match_rows("throughput", side, [row("b", 4, 60)])
        assert [pair.ratio for pair in table.pairs] == [2.0] and list(table.differs) == [
            "framework",
            "replica_batch",
        ]
