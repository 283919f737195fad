"""What differs between two sides besides their settings."""

from __future__ import annotations

from typing import Any

import pytest

from factories import make_record
from steptime.analysis.differences import differences, format_values

MACHINE = {
    "host": "node1",
    "cpu": "AMD EPYC",
    "cores": 2,
    "kernel": "6.1",
    "gpus": [{"name": "H200", "driver": "580"}],
    "health": {"governor": "performance"},
}


def compare(a: dict[str, Any], b: dict[str, Any]) -> Any:
    return differences(make_record(1, **a).attempts, make_record(2, **b).attempts)


def test_differences_are_empty_for_a_case_against_itself() -> None:
    assert compare({"machine": MACHINE}, {"machine": MACHINE}) == {}


@pytest.mark.parametrize(
    ("name", "change", "values"),
    [
        ("host", {"host": "node2"}, (["node1"], ["node2"])),
        ("cpu", {"cpu": "Intel"}, (["AMD EPYC"], ["Intel"])),
        ("cores", {"cores": 64}, ([2], [64])),
        ("kernel", {"kernel": "6.18"}, (["6.1"], ["6.18"])),
        ("gpus", {"gpus": []}, (["H200"], ["none"])),
        ("driver", {"gpus": [{"name": "H200", "driver": "590"}]}, (["580"], ["590"])),
        ("governor", {"health": {"governor": "powersave"}}, (["performance"], ["powersave"])),
    ],
)
def test_differences_name_the_machine(name: str, change: dict[str, Any], values: Any) -> None:
    differing = compare({"machine": MACHINE}, {"machine": MACHINE | change})
    assert differing["machine"][name] == values


def test_differences_name_the_software() -> None:
    differing = compare(
        {"software": {"pytorch": "1.13", "python": "3.11"}},
        {"software": {"pytorch": "2.13", "python": "3.11"}},
    )
    assert differing == {"software": {"pytorch": (["1.13"], ["2.13"])}}


def test_differences_name_another_lowering_of_the_same_framework() -> None:
    differing = compare({"program": "old"}, {"program": "new"})
    assert differing["program"] == {"pytorch_lowering": (["old"], ["new"])}
    assert compare({"program": ""}, {"program": "new"}) == {}


def test_differences_skip_what_a_side_does_not_report() -> None:
    assert compare({"machine": {"kernel": "6.1"}}, {"machine": {}}) == {}


def test_differences_skip_what_is_drawn_for_each_process() -> None:
    random: dict[str, Any] = {"PYTHONHASHSEED": "1", "padding_bytes": 7, "session_process": 4}
    random["slurm"] = {"SLURM_JOB_ID": "1"}
    assert compare({"environment": random}, {"environment": {}}) == {}
    assert "environment" in compare({"environment": {"OMP_NUM_THREADS": "1"}}, {})


def test_differences_mark_the_workers_of_a_comparison() -> None:
    differing = compare({}, {"pair": "p"})
    assert differing == {"settings": {"measured_by": (["run"], ["compare"])}}


def test_differences_look_at_all_processes() -> None:
    a, b = list(make_record(1).attempts), list(make_record(2).attempts)
    b[3] = make_record(3, software={"torch": "3"}).attempts[0]
    assert differences(a, b) == {"software": {"torch": (["2"], ["2", "3"])}}


def test_format_values_are_short() -> None:
    assert format_values([None]) == "none"
    assert format_values(["n1", "n2", "n3", "n4"]) == "n1 or n2 or n3 or …"
    assert len(format_values(["x" * 500])) == 32
