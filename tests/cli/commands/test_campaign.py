"""What can be said of a campaign without Slurm; with it: tests/executors/slurm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run.slurm.folder import CampaignFolder
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

Command = Callable[..., "subprocess.CompletedProcess[str]"]
MACHINE = str(Path(__file__).parents[3] / "docs" / "examples" / "psc-machine.toml")


def test_a_dry_run_shows_the_arrays_of_the_matrix_and_writes_nothing(
    steptime: Command, tmp_path: Path
) -> None:
    done = steptime(
        "submit", "psc", "--machine", MACHINE, "--dry-run", "--preset", "single", "--json"
    )
    found = json.loads(done.stdout)
    assert found["submitted"] == 24 and len(found["arrays"]) == 6
    assert len(found["plan"]["cases"]) == 24 and all(
        entry["seconds"][0] > 0 for entry in found["plan"]["cases"]
    )
    assert {array["request"][1] for array in found["arrays"]} == {
        f"--gres=gpu:{kind}:{count}" for kind in ("k80", "p100") for count in (1, 2, 4)
    }
    assert not (tmp_path / "results").exists()


def test_a_plan_without_a_section_for_its_nodes_is_refused(steptime: Command) -> None:
    done = steptime("submit", "psc", "--dry-run")
    assert done.returncode == 1 and "; there is no machine file." in done.stderr


def test_an_unknown_tier_is_refused_before_anything_is_submitted(
    steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "machine.toml").write_text('[slurm.k80]\n[tiers]\nlocal = "$LOCAL"\n')
    done = steptime("submit", "psc", "--set", "node_type=k80", "--set", "staging=tape")
    assert done.returncode == 1 and "has no 'tape', found local" in done.stderr


def test_without_a_campaign_there_is_nothing_to_look_at(steptime: Command) -> None:
    for word in ("status", "collect", "cancel"):
        done = steptime(word)
        assert done.returncode == 1 and "`steptime submit PLAN` starts one" in done.stderr


@pytest.fixture
def watch(tmp_path: Path) -> Callable[[str, str], subprocess.Popen[str]]:
    """Looks at a campaign of one task, of which squeue says what a shell script prints: its name there is $NAME."""
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
        **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "STEPTIME_STORE": str(tmp_path / "results"),
        "NAME": folder.name(folder.array_folders()[0]),
    }  # fmt: skip

    def look(script: str, seconds: str) -> subprocess.Popen[str]:
        (tmp_path / "squeue").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "squeue").chmod(0o755)
        words = [sys.executable, "-u", "-P", "-m", "steptime", "status", "--watch", seconds]
        return subprocess.Popen(
            words,
            env=variables,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return look


def test_who_stops_looking_does_not_stop_the_campaign(
    watch: Callable[..., subprocess.Popen[str]],
) -> None:
    with watch('echo "7|0|$NAME|PENDING|Priority||1:00|0|0|"', "60") as looking:
        assert (
            looking.stdout is not None
            and "0 of 1 processes done, time left" in looking.stdout.readline()
        )
        looking.send_signal(signal.SIGINT)
        assert looking.communicate()[1] == "interrupted: the campaign itself goes on.\n"
    assert looking.returncode == 130


def test_a_controller_that_goes_away_meanwhile_is_waited_for_and_causes_are_written_down(
    watch: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    script = """echo >> looks
case $(wc -l < looks) in
1) echo "7|0|$NAME|PENDING|Priority||1:00|0|0|" ;;
2) echo "no controller" >&2; exit 1 ;;
*) echo "7|0|$NAME|CANCELLED|None||1:00|0|0|" ;;
esac"""
    with watch(script, "0.1") as looking:
        shown, said = looking.communicate(timeout=60)
    assert (
        looking.returncode == 0
        and shown.count("0 of 1 processes done") == 2
        and "failed: cancelled 1" in shown
    )
    assert "squeue --noheader --array failed: no controller" in said and "Traceback" not in said
    (attempt,) = FolderStore(tmp_path / "results").attempts()
    assert attempt.failure is not None and attempt.failure.cause == "cancelled"


@pytest.mark.parametrize("seconds", ["-1", "inf"])
def test_a_time_that_can_not_be_slept_is_refused(seconds: str, steptime: Command) -> None:
    done = steptime("status", f"--watch={seconds}")
    assert done.returncode == 2 and "Invalid value for '--watch'" in done.stderr


def test_without_slurm_no_campaign_is_begun(
    steptime: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = steptime("submit", "psc", "--machine", MACHINE)
    assert done.returncode == 1 and "There is no scontrol here" in done.stderr
    assert not (tmp_path / "results").exists()
