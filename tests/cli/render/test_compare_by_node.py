"""`steptime compare --by-node` over stored results: PSC's own logs, and own processes on named nodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steptime.core.record import Attempt
from steptime.store.folder import FolderStore

Command = Callable[..., "subprocess.CompletedProcess[str]"]
LOGS = Path(__file__).parents[3] / ".." / "shared" / "data" / "results" / "psc-deep-mnist"


def test_psc_s_own_question_is_answered_by_pairing_and_only_so(steptime: Command) -> None:
    """Does it matter where the data are staged? Pairs of one node and day: +0.4 % of speed, and no effect."""
    if not LOGS.is_dir():
        pytest.skip("needs PSC's logs in ../shared/data")
    steptime("import", str(LOGS.resolve()))
    words = ("compare", "source=psc&device=k80&devices=1&data=scratch", "data=local", "--by-node")
    found = json.loads(steptime(*words, "--json").stdout)
    assert (
        found["paired"]["outcome"] == "likely same"
        and round(1 / found["paired"]["ratio"], 3) == 1.004
    )
    assert (
        found["naive"]["outcome"] == "inconclusive"
        and found["naive"]["high"] > 2
        and found["spread"] > 2.5
    )
    assert list(found["nodes"]) == ["gpu001", "gpu002", "gpu006", "gpu015"] and found["pairs"] == 5
    assert steptime(*words).stdout.startswith(
        "B and A likely take the same time: ×0.996 (0.983 … 1.008) in time"
    )


@pytest.fixture
def campaign(tmp_path: Path, attempt_of: Callable[..., Attempt], times_of: Any, write: Any) -> None:
    """Three nodes, the last one slow; of each tier a case with a process on every node. `local` takes 10 % more."""
    store = FolderStore(tmp_path / "results")
    for tier, factor in (("scratch", 1.0), ("local", 1.1)):
        for process, level in enumerate((1e6, 1e6, 3e6)):
            times = times_of(7, centre_ns=level * factor, steps=60)
            told = {"slurm": {"SLURMD_NODENAME": f"k80-{process}"}}
            write(
                store,
                attempt_of(times, process=process, session="one", environment=told, staging=tier),
            )


@pytest.mark.usefixtures("campaign")
def test_processes_of_one_case_are_paired_on_their_own_nodes(steptime: Command) -> None:
    found = json.loads(
        steptime("compare", "data=scratch", "data=local", "--by-node", "--json").stdout
    )
    assert found["nodes"] == {f"k80-{node}": pytest.approx(1.1, rel=1e-3) for node in range(3)}
    assert (
        found["paired"]["outcome"] == "likely slower"
        and found["naive"]["outcome"] == "inconclusive"
    )


@pytest.mark.usefixtures("campaign")
def test_a_question_that_can_not_be_answered_says_what_is_wrong(steptime: Command) -> None:
    done = steptime("compare", "data=scratch", "data=tape", "--by-node")
    assert (
        done.returncode == 1
        and "No node has results of both, equal but for data; found 3 of A" in done.stderr
    )
    done = steptime("compare", "data=scratch", "data=scratch", "--by-node")
    assert done.returncode == 1 and "ask for the same results" in done.stderr
    done = steptime("compare", "data=scratch", "precision=bf16", "--by-node")
    assert done.returncode == 5 and "precision differs: any and bf16" in done.stdout
