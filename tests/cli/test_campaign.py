"""What can be said of a campaign without Slurm; with it: tests/executors/slurm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.executors.slurm.folder import CampaignFolder
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

Command = Callable[..., "subprocess.CompletedProcess[str]"]
MACHINE = str(Path(__file__).parents[2] / "docs" / "examples" / "psc-machine.toml")


def test_a_dry_run_shows_the_arrays_of_the_matrix_and_writes_nothing(steptime: Command, tmp_path: Path) -> None:
    done = steptime("submit", "psc", "--machine", MACHINE, "--dry-run", "--profile", "single", "--json")
    found = json.loads(done.stdout)
    assert found["submitted"] == 24 and len(found["arrays"]) == 6
    assert len(found["plan"]["cases"]) == 24 and all(entry["seconds"][0] > 0 for entry in found["plan"]["cases"])
    assert {array["request"][1] for array in found["arrays"]} == {
        f"--gres=gpu:{kind}:{count}" for kind in ("k80", "p100") for count in (1, 2, 4)
    }
    assert not (tmp_path / "results").exists()


def test_a_plan_without_a_section_for_its_nodes_is_refused(steptime: Command) -> None:
    done = steptime("submit", "psc", "--dry-run")
    assert done.returncode == 1 and "No [slurm.…] for node_type 'k80'" in done.stderr


def test_an_unknown_tier_is_refused_before_anything_is_submitted(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text('[slurm.k80]\n[tiers]\nlocal = "$LOCAL"\n')
    done = steptime("submit", "psc", "--set", "node_type=k80", "--set", "staging=tape")
    assert done.returncode == 1 and "has no 'tape', found local" in done.stderr


def test_without_a_campaign_there_is_nothing_to_look_at(steptime: Command) -> None:
    for word in ("status", "collect", "cancel"):
        done = steptime(word)
        assert done.returncode == 1 and "`steptime submit PLAN` starts one" in done.stderr


def test_who_stops_looking_does_not_stop_the_campaign(tmp_path: Path) -> None:
    folder = CampaignFolder(FolderStore(tmp_path / "results"), uuid7())
    folder.make({"plan": "p", "name": "n", "title": "", "started": "2026-01-01T00:00:00+00:00"})
    job = Job(id=uuid7(), session="s", plan="p", process=0, case=Case(workload="mnist-mlp"), protocol=Protocol())
    folder.number(folder.add_array([[job]], ""), "7")
    name = folder.name(folder.array_folders()[0])
    (tmp_path / "squeue").write_text(f"#!/bin/sh\necho '7|0|{name}|PENDING|Priority||1:00|0|0|'\n")
    (tmp_path / "squeue").chmod(0o755)
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "STEPTIME_STORE": str(tmp_path / "results")}
    words = [sys.executable, "-u", "-P", "-m", "steptime", "status", "--watch", "60"]
    with subprocess.Popen(words, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as looking:
        assert looking.stdout is not None and "0 of 1 processes done, time left" in looking.stdout.readline()
        looking.send_signal(signal.SIGINT)
        assert looking.communicate()[1] == "interrupted: the campaign itself goes on.\n"
    assert looking.returncode == 130
