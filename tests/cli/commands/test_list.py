"""`steptime list`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from steptime import networks, plugins
from steptime.cli.commands.list import SECTIONS, list_command
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Failure
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7


def test_networks_come_with_their_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    list_command("networks")
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("resnet50")).split()[-2:] == [
        "25,557,032",
        "8,178,368,512",
    ]


def test_everything_is_listed_when_nothing_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    list_command()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":")] == [f"{name}:" for name in SECTIONS]


def test_a_pipe_gets_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    list_command()
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_is_json_too(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    list_command(section, json=True)
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [section]
    assert all(entry["name"] for entry in document[section])


def test_json_and_shelves_agree(capsys: pytest.CaptureFixture[str]) -> None:
    list_command(json=True)
    document = json.loads(capsys.readouterr().out)
    found = {section: [entry["name"] for entry in entries] for section, entries in document.items()}
    assert found["networks"] == list(networks.catalogue())
    assert found["frameworks"] == plugins.names("frameworks")
    assert found["presets"] == ["quick", "standard", "gold", "single"]
    assert "tour" in found["plans"]


def test_a_misspelt_section_gets_the_nearest_known() -> None:
    with pytest.raises(SteptimeError, match=r"No list of 'netwoks'. Did you mean 'networks'"):
        list_command("netwoks")


def test_listing_imports_no_framework_and_no_numpy() -> None:
    code = "import sys; from steptime.cli.commands.list import list_command; list_command(); print(sorted(sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    loaded = shown.splitlines()[-1]
    assert "'rich'" in loaded and "'numpy'" not in loaded and "'torch'" not in loaded


def test_results_are_listed_with_the_ids_that_compare_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEPTIME_STORE", str(tmp_path))
    store = FolderStore(tmp_path)
    case = Case(workload="lenet5", layout="nhwc")
    job = Job(id=uuid7(), session=uuid7(), plan="p", process=0, case=case, protocol=Protocol())
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        journal.write_failure(Failure(cause=Cause.OUT_OF_MEMORY, reason="64 GiB wanted."))
    list_command("results", json=True)
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert (found["id"], found["session"]) == (job.id[-8:], job.session[-8:])
    assert found["case"] == "lenet5 training pytorch eager cpu fp32 batch 32 layout=nhwc"
    assert (found["status"], found["processes"], found["typical_step_seconds"]) == (
        "out_of_memory",
        0,
        None,
    )
    list_command("results")
    assert "out_of_memory" in capsys.readouterr().out


def test_a_store_without_results_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEPTIME_STORE", str(tmp_path))
    list_command("results")
    assert capsys.readouterr().out.startswith("No results yet: `steptime run` measures some")
