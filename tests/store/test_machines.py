"""Measured peaks on disk: written once, found by machine, device and precision."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from steptime.store import machines
from steptime.store.atomic import NotWritten


def facts(rate: float, fingerprint: str = "abc") -> dict[str, Any]:
    peaks = {"fp32": {"flops_per_second": rate}, "copy": {"bytes_per_second": 1e10}}
    return {"machine": {"fingerprint": fingerprint}, "peaks": {"cpu": {"peaks": peaks}}}


def test_stored_peak_is_found_by_machine_device_and_precision(tmp_path: Path) -> None:
    machines.write_machine(tmp_path, facts(4e10))
    assert machines.stored_peak(tmp_path, "abc", "cpu", "fp32") == 4e10
    assert machines.stored_peak(tmp_path, "abc", "cpu", "bf16") is None
    assert machines.stored_peak(tmp_path, "abc", "cuda", "fp32") is None
    assert machines.stored_peak(tmp_path, "other", "cpu", "fp32") is None


def test_newest_peaks_are_those_of_the_machine_measured_last(tmp_path: Path) -> None:
    assert machines.newest_peaks(tmp_path) == {}
    for age, rate in ((2, 1e12), (1, 3e12)):
        path = machines.write_machine(tmp_path, facts(rate, fingerprint=str(age)))
        os.utime(path, (1000 - age, 1000 - age))
    assert machines.newest_peaks(tmp_path) == {"cpu": {"fp32": 3e12}}


def test_peak_rates_include_the_copy(tmp_path: Path) -> None:
    assert machines.peak_rates(facts(4e10), "cpu") == {"fp32": 4e10, "copy": 1e10}
    assert machines.peak_rates(facts(4e10), "cuda") == {}


@pytest.mark.parametrize("text", ["", "[]", '{"peaks": 3}', '{"peaks": {"cpu": {"peaks": [1]}}}'])
def test_damaged_machine_file_has_no_peaks(text: str, tmp_path: Path) -> None:
    path = machines.write_machine(tmp_path, facts(4e10))
    path.write_text(text)
    assert machines.stored_peak(tmp_path, "abc", "cpu", "fp32") is None
    assert not any(machines.newest_peaks(tmp_path).values())


def test_write_machine_replaces_older_peaks(tmp_path: Path) -> None:
    machines.write_machine(tmp_path, facts(1e10))
    path = machines.write_machine(tmp_path, facts(2e10))
    assert json.loads(path.read_text()) == facts(2e10)
    assert [file.name for file in path.parent.iterdir()] == ["abc.json"]


def test_write_machine_explains_a_disk_that_refuses(tmp_path: Path) -> None:
    (tmp_path / "machines").write_text("a file, not a folder")
    with pytest.raises(NotWritten, match="Choose another --store"):
        machines.write_machine(tmp_path, facts(1e10))


def test_write_machine_keeps_older_peaks_of_other_devices(tmp_path: Path) -> None:
    machines.write_machine(tmp_path, facts(1e10))
    new = {"machine": {"fingerprint": "abc"}, "peaks": {"cuda:0": {"peaks": {}}}}
    machines.write_machine(tmp_path, new)
    assert machines.stored_peak(tmp_path, "abc", "cpu", "fp32") == 1e10
    assert set(machines.read_peaks(tmp_path, "abc")) == {"cpu", "cuda:0"}


def test_limits_by_machine_have_rates_and_threads_of_a_kind_of_device(tmp_path: Path) -> None:
    machines.write_machine(tmp_path, facts(4e10))
    board = facts(6e13, fingerprint="board")
    board["machine"]["threads_usable"] = 16
    board["peaks"]["cuda:0"] = board["peaks"].pop("cpu")
    machines.write_machine(tmp_path, board)
    assert machines.limits_by_machine(tmp_path, "cpu") == {
        "abc": {"cpu": {"flops_per_second": {"fp32": 4e10}, "threads": None}}
    }
    assert machines.limits_by_machine(tmp_path, "cuda:1") == {
        "board": {"cuda:0": {"flops_per_second": {"fp32": 6e13}, "threads": 16}}
    }


@pytest.mark.parametrize("text", ["", "[]", '{"peaks": 3}', '{"peaks": {"cpu": {"peaks": [1]}}}'])
def test_limits_by_machine_skip_a_damaged_file(text: str, tmp_path: Path) -> None:
    machines.write_machine(tmp_path, facts(4e10)).write_text(text)
    assert machines.limits_by_machine(tmp_path, "cpu") == {}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"peaks": []}', '{"peaks": {"cpu": 1}}', '{"machine": 1, "peaks": {}}']
)
def test_damaged_file_is_a_problem_and_hides_no_other(text: str, tmp_path: Path) -> None:
    path = machines.write_machine(tmp_path, facts(4e10))
    path.with_name("damaged.json").write_text(text)
    problems: list[str] = []
    assert len(machines.read_machines(tmp_path, problems)) == 1 and len(problems) == 1
    assert list(machines.limits_by_machine(tmp_path, "cpu")) == ["abc"]
    assert machines.read_peaks(tmp_path, "damaged") == {}
    os.utime(path, (0, 0))
    assert machines.newest_peaks(tmp_path) == {}
