"""What can be said of a campaign without Slurm; with it: tests/executors/slurm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., "subprocess.CompletedProcess[str]"]
MACHINE = str(Path(__file__).parents[2] / "docs" / "examples" / "psc-machine.toml")


def test_a_dry_run_shows_the_arrays_of_the_matrix_and_writes_nothing(steptime: Command, tmp_path: Path) -> None:
    done = steptime("submit", "psc", "--machine", MACHINE, "--dry-run", "--profile", "single", "--json")
    found = json.loads(done.stdout)
    assert found["submitted"] == 24 and len(found["arrays"]) == 6
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
