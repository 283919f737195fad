"""The rule that tells a change of level from one odd run."""

from __future__ import annotations

from typing import Any

from steptime.index.history import find_changes


def rows(*values: float, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{place}",
            "started": f"2026-01-{place + 1:02}",
            "model": "m",
            "step_time": value,
            "step_time_low": 0.95 * value,
            "step_time_high": 1.05 * value,
            **more,
        }
        for place, value in enumerate(values)
    ]


def test_find_changes_finds_none_in_a_constant_level() -> None:
    assert find_changes("step_time", rows(1.0, 1.02, 0.99, 1.03, 1.0)) == {}


def test_find_changes_finds_a_lasting_shift_at_its_first_run() -> None:
    (found,) = find_changes("step_time", rows(1.0, 1.0, 1.3, 1.3)).values()
    assert (found.row["id"], found.verdict, found.ratio) == ("2", "worse", 1.3)


def test_find_changes_ignores_a_single_odd_run() -> None:
    assert find_changes("step_time", rows(1.0, 1.0, 2.0, 1.0, 1.0)) == {}


def test_find_changes_needs_a_run_after_the_shift() -> None:
    assert find_changes("step_time", rows(1.0, 1.0, 1.3)) == {}


def test_find_changes_finds_each_of_two_shifts() -> None:
    found = find_changes("step_time", rows(1.0, 1.0, 1.3, 1.3, 1.0, 1.0))
    assert [(name, one.verdict) for name, one in found.items()] == [("2", "worse"), ("4", "better")]


def test_find_changes_needs_two_runs_on_the_same_side() -> None:
    assert find_changes("step_time", rows(1.0, 1.0, 1.3, 0.7)) == {}


def test_find_changes_judges_each_configuration_separately() -> None:
    other = [{**row, "id": f"b{row['id']}", "model": "other"} for row in rows(1.3, 1.3)]
    assert find_changes("step_time", [*rows(1.0, 1.0), *other]) == {}


def test_find_changes_names_the_version_before_if_it_changed() -> None:
    past = rows(1.0, 1.0, software="torch 1") + [
        {**row, "id": f"b{row['id']}", "started": "2027"} for row in rows(2, 2)
    ]
    (found,) = find_changes("step_time", past).values()
    assert found.since == "torch 1"


def test_find_changes_ignores_runs_without_an_interval() -> None:
    assert find_changes("step_time", rows(1.0, 1.0, 2.0, 2.0, step_time_low=None)) == {}
