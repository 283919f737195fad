"""A dry run: what varies in rows, what does not once, and the source of the times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.cli.render.dry_run import list_cases
from steptime.cli.request import read_plan
from steptime.core.errors import SteptimeError

DLBS = {
    "parameters": {"exp.framework": "pytorch", "exp.gpus": "", "exp.docker": True},
    "variables": {"exp.model": ["resnet50", "alexnet_owt"], "exp.replica_batch": [4, 8]},
}


@pytest.fixture
def listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    def run(name: str, text: str, *, json: bool = False) -> str:
        monkeypatch.setenv("STEPTIME_STORE", str(tmp_path / "results"))
        monkeypatch.chdir(tmp_path)
        Path(name).write_text(text)
        list_cases(read_plan(name, {}), json=json)
        return capsys.readouterr().out

    return run


def test_shared_settings_stand_once_above_the_rows(listed: Callable[..., str]) -> None:
    lines = listed(
        "mine.toml",
        'constants.workload = "lenet5"\nconstants.threads = 1\nsweep.batch_size = [1, 8]\n',
    )
    words = lines.splitlines()
    assert words[1].startswith("all: workload lenet5 · framework pytorch · phase training")
    assert words[1].endswith("· threads 1 · time from a guess")
    assert words[2].split() == ["batch", "size", "time"]
    assert [row.split()[0] for row in words[4:6]] == ["1", "8"]


def test_a_plan_of_dlbs_is_expanded(listed: Callable[..., str]) -> None:
    found = json.loads(listed("theirs.json", json.dumps(DLBS), json=True))
    cases = [
        (entry["case"]["workload"], entry["case"]["batch_size"], entry["case"]["device"])
        for entry in found["cases"]
    ]
    names = ["resnet50", "alexnet-owt"]
    assert cases == [(name, size, "cpu") for name in names for size in (4, 8)]
    assert found["notes"] == [
        "no counterpart: exp.docker = True (containers are named in the machine file)"
    ]
    assert [entry["source"] for entry in found["cases"]] == ["guess"] * 4


def test_a_mistake_in_a_plan_of_dlbs_names_the_file(
    listed: Callable[..., str],
) -> None:
    values = {"exp.framework": "pytorch", "exp.model": "resnet50", "exp.replica_batch": "$(1 / 0)$"}
    with pytest.raises(
        SteptimeError,
        match=r"^theirs.json, as `steptime show theirs.json` prints it: line \d+: .* by zero",
    ):
        listed("theirs.json", json.dumps({"parameters": values}))


def test_a_time_beyond_a_year_is_not_a_number(listed: Callable[..., str]) -> None:
    text = listed(
        "mine.toml", 'constants.workload = "resnet50"\nconstants.batch_size = 2147483647\n'
    )
    assert "1 case, over a year (standard)." in text


def test_dry_run_says_that_no_framework_was_loaded(listed: Callable[..., str]) -> None:
    text = listed("mine.toml", 'constants.workload = "lenet5"\nconstants.precision = "int8"\n')
    assert "1 case, about" in text and text.splitlines()[-1].startswith("No framework was loaded:")


def test_a_plan_of_many_hours_says_so_first_and_names_a_smaller_choice(
    listed: Callable[..., str],
) -> None:
    text = 'preset = "quick"\n[constants]\nworkload = "vgg16"\nframework = "numpy"\n'
    first = listed("mine.toml", text + "batch_size = 4096\n").splitlines()[0]
    assert "much longer than the budget of 60 s for each case" in first
    assert first.endswith("Choose a smaller batch_size or --preset single.")


def test_a_plan_of_minutes_is_not_questioned(listed: Callable[..., str]) -> None:
    assert "budget" not in listed("mine.toml", '[constants]\nworkload = "lenet5"\n')
