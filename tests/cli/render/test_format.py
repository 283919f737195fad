"""Counts and cases as people read them."""

from __future__ import annotations

from steptime.cli.render.format import describe_case, differing_settings, plural, processes
from steptime.core.case import Case


def test_plural_has_no_s_for_one() -> None:
    assert [plural(n, "journal") for n in (0, 1, 3000)] == [
        "0 journals",
        "1 journal",
        "3,000 journals",
    ]
    assert [processes(1), processes(2)] == ["1 process", "2 processes"]


def test_differing_settings_names_what_distinguishes_cases() -> None:
    cases = [Case(workload="lenet5", batch_size=size) for size in (1, 2)]
    assert differing_settings(cases) == ["workload", "batch_size"]
    assert differing_settings(cases[:1], always=()) == []


def test_describe_case_names_the_settings_of_numbers() -> None:
    case = Case(workload="lenet5", batch_size=8)
    assert describe_case(case, ["workload", "batch_size", "node_type"]) == "lenet5 batch size 8"
