"""`steptime machine`: facts as text, and peaks that are stored."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer

from command_line import Command, Snapshot, Terminal
from odd_inputs import time_limit
from steptime.cli.commands.machine import machine_command
from steptime.cli.render.machine import labelled_lines, show
from steptime.store.machines import write_machine

FACTS: dict[str, Any] = {
    "machine": {
        "fingerprint": "abc",
        "cpu": {"model": "A CPU", "cores": 2},
        "memory_gib": 8,
        "health": {"turbo": False, "steal_share": 0.0125},
    },
    "software": {"python": "3.11", "numpy": "2.0"},
    "machine_file": {
        "path": "machine.toml",
        "frameworks": {"jax": ["podman", "run", "python"]},
        "launches": {"mpi": {"image": "a.sif", "kind": "apptainer"}},
        "tiers": {"local": "$LOCAL"},
        "slurm": ["k80"],
    },
    "peaks": {
        "cpu": {
            "peaks": {
                "fp32": {
                    "flops_per_second": 4e10,
                    "median_flops_per_second": 3.9e10,
                    "shape": [1024, 1024, 1024],
                    "n": 20,
                },
                "copy": {
                    "bytes_per_second": 1e10,
                    "median_bytes_per_second": 9e9,
                    "shape": [1000000],
                    "n": 20,
                },
            }
        }
    },
    "stored": "results/machines/abc.json",
}


@pytest.mark.parametrize("columns", [80, 120])
def test_facts_and_peaks_as_text(
    columns: int, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", str(columns))
    show(FACTS)
    snapshot(f"machine-{columns}", terminal.getvalue())


def test_labelled_lines_moves_units_from_names_to_values() -> None:
    facts = {
        "caches_bytes": {"L2": 1 << 19},
        "gpus": [{"name": "H200", "power_limit_w": 700.0, "sm_clock_most_mhz": 1980}],
        "turbo": None,
        "smt_shared": False,
        "steal_share": 0.0125,
        "flags": ["avx", "fma"],
    }
    assert dict(labelled_lines(facts)) == {
        "caches L2": "512 KiB",
        "gpus 0 name": "H200",
        "gpus 0 power limit": "700 W",
        "gpus 0 sm clock most": "1,980 MHz",
        "smt shared": "no",
        "steal": "1.2 %",
        "flags": "avx, fma",
    }


@pytest.mark.live
def test_trust_describes_and_stores_nothing(
    steptime: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    (tmp_path / "machine.toml").write_text(
        '[frameworks.jax]\nlaunch = ["podman", "run", "python"]\n'
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))
    refused = steptime("machine", "--no-peaks")
    assert refused.returncode == 1 and "is not trusted" in refused.stderr
    document = json.loads(steptime("machine", "--trust", "--json").stdout)
    assert document["machine"]["fingerprint"] and document["machine"]["health"]
    assert document["software"]["numpy"] and document["peaks"] == {}
    assert document["machine_file"]["frameworks"] == {"jax": ["podman", "run", "python"]}
    assert [path.name for path in tmp_path.iterdir()] == ["machine.toml"]


@pytest.mark.live
def test_peaks_are_stored_by_the_fingerprint_of_the_machine(
    steptime: Command, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the peaks are measured with PyTorch")
    done = steptime("machine")
    if done.returncode == 1:
        # Other tests may run beside this one.
        assert "No peaks of cpu: in 3 tries" in done.stdout and "None are stored" in done.stdout
        assert not list(tmp_path.glob("results/machines/*.json"))
        return
    assert done.returncode == 0 and "FLOP/s" in done.stdout and "B/s" in done.stdout
    (path,) = tmp_path.glob("results/machines/*.json")
    document = json.loads(path.read_text())
    assert document["machine"]["fingerprint"] == path.stem
    assert document["peaks"]["cpu"]["peaks"]["fp32"]["flops_per_second"] > 0


def test_a_wrong_machine_file_is_reported_first(
    steptime: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "machine.toml").write_text('[frameworks.jacks]\npython = "python3"\n')
    monkeypatch.setenv("STEPTIME_MACHINE", "machine.toml")
    done = steptime("machine", "--no-peaks")
    sentence = "machine.toml: line 1: No framework 'jacks'. Did you mean 'jax'?"
    assert done.returncode == 1 and sentence in done.stderr


REFUSED = {"cpu": {"tries": 3, "reason": "some task waited for a CPU for 99 % of the time"}}


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Measures nothing: the machine is busy."""
    found = {"machine": {"fingerprint": "abc"}, "software": {}, "peaks": {}}
    monkeypatch.setattr(
        "steptime.cli.commands.machine._inspect",
        lambda *_: {**found, "refused": {"cpu": dict(REFUSED["cpu"])}},
    )
    monkeypatch.setenv("STEPTIME_STORE", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


def test_machine_stores_no_peaks_of_a_busy_machine(
    busy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as end:
        machine_command()
    assert end.value.exit_code == 1 and not list(busy.glob("machines/*"))
    printed = capsys.readouterr().out
    assert "waited for a CPU for 99 % of the time. None are stored." in printed
    assert "run steptime machine again" in printed


def test_machine_keeps_older_peaks_if_it_is_busy(
    busy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_machine(busy, {**FACTS, "peaks": {"cpu": {"peaks": {}, "measured": "2026-01-02"}}})
    before = path.read_text()
    with pytest.raises(typer.Exit):
        machine_command()
    assert path.read_text() == before and "Those of 2026-01-02 stay." in capsys.readouterr().out


@pytest.fixture
def fake_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    facts: dict[str, Any] = {"machine": {}, "software": {}, "peaks": {}, "refused": {}}
    monkeypatch.setattr("steptime.cli.commands.machine._inspect", lambda *_: {**facts})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_machine_shows_the_tiers_of_a_machine_file(
    fake_facts: None, steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "machine.toml").write_text('[tiers]\nlocal = "$LOCAL"\n')
    assert (
        "tier local                   is the folder $LOCAL" in steptime("machine", "--trust").stdout
    )


def test_machine_says_that_a_machine_file_is_empty(
    fake_facts: None, steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "machine.toml").touch()
    assert "machine file machine.toml:\n  It is empty." in steptime("machine", "--trust").stdout


@pytest.mark.parametrize("flags", [["--trust"], ["--no-peaks"]])
def test_machine_refuses_a_pipe_as_machine_file(
    flags: list[str], steptime: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "machine.toml")
    monkeypatch.setenv("STEPTIME_MACHINE", "machine.toml")
    with time_limit(10):
        done = steptime("machine", *flags)
    assert done.returncode == 1 and "machine.toml cannot be read" in done.stderr


def test_machine_takes_the_null_device_for_no_machine_file(
    fake_facts: None, steptime: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "machine.toml").write_text("not trusted")
    monkeypatch.setenv("STEPTIME_MACHINE", "/dev/null")
    done = steptime("machine", "--no-peaks")
    assert done.returncode == 0 and "machine file" not in done.stdout
