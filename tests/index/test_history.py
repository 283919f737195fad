"""The rule that tells a change of level from one odd run."""

from __future__ import annotations

from typing import Any

from steptime.index.history import find_changes


def rows(*values: float, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"{place}", "started": f"2026-01-{place + 1:02}", "model": "m", "step_time": value,
         "step_time_low": 0.95 * value, "step_time_high": 1.05 * value, **more}
        for place, value in enumerate(values)
    ]  # fmt: skip


def test_a_level_that_stays_has_no_change() -> None:
    assert find_changes("step_time", rows(1.0, 1.02, 0.99, 1.03, 1.0)) == {}


def test_a_shift_that_lasts_is_found_at_its_first_run() -> None:
    (found,) = find_changes("step_time", rows(1.0, 1.0, 1.3, 1.3)).values()
    assert (found.row["id"], found.verdict, found.ratio) == ("2", "worse", 1.3)


def test_one_odd_run_is_no_change() -> None:
    assert find_changes("step_time", rows(1.0, 1.0, 2.0, 1.0, 1.0)) == {}


def test_the_newest_run_alone_proves_nothing() -> None:
    assert find_changes("step_time", rows(1.0, 1.0, 1.3)) == {}


def test_two_shifts_are_two_changes() -> None:
    found = find_changes("step_time", rows(1.0, 1.0, 1.3, 1.3, 1.0, 1.0))
    assert [(name, one.verdict) for name, one in found.items()] == [("2", "worse"), ("4", "better")]


def test_one_run_above_and_one_below_are_no_change() -> None:
    assert find_changes("step_time", rows(1.0, 1.0, 1.3, 0.7)) == {}


def test_each_configuration_has_its_own_past() -> None:
    other = [{**row, "id": f"b{row['id']}", "model": "other"} for row in rows(1.3, 1.3)]
    assert find_changes("step_time", [*rows(1.0, 1.0), *other]) == {}


def test_the_version_before_is_told_where_it_changed_too() -> None:
    past = rows(1.0, 1.0, software="torch 1") + [
        {**row, "id": f"b{row['id']}", "started": "2027"} for row in rows(2, 2)
    ]
    (found,) = find_changes("step_time", past).values()
    assert found.since == "torch 1"


def test_runs_without_an_interval_are_not_judged() -> None:
    assert find_changes("step_time", rows(1.0, 1.0, 2.0, 2.0, step_time_low=None)) == {}
