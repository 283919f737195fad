"""The commands for a cluster, as far as they need no Slurm; with it: tests/run/slurm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Command, Process, Snapshot, Terminal
from steptime.cli.render.campaign import show_progress
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run.slurm.folder import CampaignFolder
from steptime.run.slurm.progress import ProcessStatus, Progress
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

MACHINE = str(Path(__file__).parents[3] / "docs" / "examples" / "psc-machine.toml")


def test_submit_dry_run_shows_the_arrays_and_writes_nothing(
    steptime: Command, tmp_path: Path
) -> None:
    flags = ["--machine", MACHINE, "--dry-run", "--preset", "single", "--json"]
    document = json.loads(steptime("submit", "psc", *flags).stdout)
    assert document["submitted"] == 24 and len(document["arrays"]) == 6
    cases = document["plan"]["cases"]
    assert len(cases) == 24 and all(entry["seconds"][0] > 0 for entry in cases)
    expected = {f"--gres=gpu:{gpu}:{n}" for gpu in ("k80", "p100") for n in (1, 2, 4)}
    assert {array["request"][1] for array in document["arrays"]} == expected
    assert not (tmp_path / "results").exists()


def test_submit_refuses_an_unknown_tier_first(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text('[slurm.k80]\n[tiers]\nlocal = "$LOCAL"\n')
    flags = ["--machine", "machine.toml", "--set", "node_type=k80", "--set", "staging=tape"]
    done = steptime("submit", "psc", *flags)
    assert done.returncode == 1 and "has no 'tape', found local" in done.stderr


def test_submit_without_slurm_begins_no_campaign(
    steptime: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = steptime("submit", "psc", "--machine", MACHINE)
    assert done.returncode == 1 and "There is no scontrol here" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("seconds", ["-1", "inf"])
def test_watch_refuses_seconds_out_of_range(seconds: str, steptime: Command) -> None:
    done = steptime("status", f"--watch={seconds}")
    assert done.returncode == 2 and "Invalid value for '--watch'" in done.stderr


@pytest.mark.parametrize("columns", [80, 120])
def test_status_shows_states_causes_and_the_time_left(
    columns: int, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = []
    for number, state in enumerate(("done", "done", "running", "waiting", "failed")):
        case = Case(workload="mnist-mlp", node_type="k80" if number % 2 else "p100")
        cause = Cause.TIMED_OUT if state == "failed" else ""
        reason = {"waiting": "Priority", "failed": "Too long."}.get(state, "")
        process = ProcessStatus(case=case, process=number, state=state, cause=cause, reason=reason)
        processes.append(process)
    progress = Progress(
        session="s", name="psc", processes=processes, seconds_left=600.0, results=2, arrays=["7"]
    )
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", str(columns))
    show_progress(progress)
    snapshot(f"status-{columns}", terminal.getvalue())


@pytest.fixture
def watch(tmp_path: Path, steptime_process: Process) -> Callable[[str, str], subprocess.Popen[str]]:
    """Watches a campaign of one task; a shell script stands for squeue and knows its $NAME."""
    folder = CampaignFolder(FolderStore(tmp_path / "results"), uuid7())
    folder.make({"plan": "p", "name": "n", "title": "", "started": "2026-01-01T00:00:00+00:00"})
    job = Job(
        id=uuid7(),
        session="s",
        plan="p",
        process=0,
        case=Case(workload="mnist-mlp"),
        protocol=Protocol(),
    )
    folder.set_number(folder.add_array([[job]], ""), "7")
    variables = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "STEPTIME_STORE": str(tmp_path / "results"),
        "NAME": folder.name(folder.array_folders()[0]),
    }

    def start(script: str, seconds: str) -> subprocess.Popen[str]:
        (tmp_path / "squeue").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "squeue").chmod(0o755)
        return steptime_process("status", "--watch", seconds, env=variables)

    return start


def test_an_interrupted_status_leaves_the_campaign_alone(
    watch: Callable[..., subprocess.Popen[str]],
) -> None:
    with watch('echo "7|0|$NAME|PENDING|Priority||1:00|0|0|"', "60") as process:
        assert process.stdout is not None
        assert "0 of 1 processes done, time left" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1] == "interrupted: the campaign itself continues.\n"
    assert process.returncode == 130


def test_status_survives_a_controller_that_stops_answering(
    watch: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    script = """echo >> looks
case $(wc -l < looks) in
1) echo "7|0|$NAME|PENDING|Priority||1:00|0|0|" ;;
2) echo "no controller" >&2; exit 1 ;;
*) echo "7|0|$NAME|CANCELLED|None||1:00|0|0|" ;;
esac"""
    with watch(script, "0.1") as process:
        shown, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and shown.count("0 of 1 processes done") == 2
    assert "failed: cancelled 1" in shown
    assert "squeue --noheader --array failed: no controller" in errors
    (attempt,) = FolderStore(tmp_path / "results").attempts()
    assert attempt.failure is not None and attempt.failure.cause == Cause.CANCELLED


def test_submit_dry_run_runs_no_file(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("open('ran', 'w')")
    (tmp_path / "p.toml").write_text('[constants]\nworkload = "nets.py:wide"\n')
    (tmp_path / "own.toml").write_text("[slurm.box]\n")
    done = steptime("submit", "p.toml", "--machine", "own.toml", "--dry-run")
    assert done.returncode == 0 and "Would load and run: nets.py:wide" in done.stdout, done.stderr
    assert not (tmp_path / "ran").exists()
