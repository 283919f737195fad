"""`steptime compare --by-node`: stored results paired by node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Command, Snapshot
from factories import make_attempt, make_times, write_journal
from steptime.store.folder import FolderStore

pytest.importorskip("duckdb", reason="the index is not installed: pip install '.[guide]'")
LOGS = Path(__file__).parents[2] / ".." / "shared" / "data" / "results" / "psc-deep-mnist"
BY_NODE = ["compare", "data=real (scratch)", "data=real (local)", "--by-node"]


def test_pairing_answers_the_question_of_psc(steptime: Command) -> None:
    """Does the staging directory matter? Paired by node and day: 0.4 % of speed, no effect."""
    if not LOGS.is_dir():
        pytest.skip("needs PSC's logs in ../shared/data")
    steptime("import", str(LOGS.resolve()))
    a = "source=psc&device=k80&devices=1&data=scratch"
    document = json.loads(steptime("compare", a, "data=local", "--by-node", "--json").stdout)
    paired, naive = document["paired"], document["naive"]
    assert paired["outcome"] == "likely same" and round(1 / paired["ratio"], 3) == 1.004
    assert naive["outcome"] == "inconclusive" and naive["high"] > 2 and document["spread"] > 2.5
    assert list(document["nodes"]) == ["gpu001", "gpu002", "gpu006", "gpu015"]
    assert document["pairs"] == 5


@pytest.fixture
def campaign(tmp_path: Path) -> None:
    """Two tiers on three nodes, the last one slow; `local` takes 10 % more everywhere."""
    store = FolderStore(tmp_path / "results")
    for tier, factor in (("scratch", 1.0), ("local", 1.1)):
        for process, level in enumerate((1e6, 1e6, 3e6)):
            times = make_times(7, centre_ns=level * factor, steps=60)
            environment = {"slurm": {"SLURMD_NODENAME": f"k80-{process}"}}
            facts = {"process": process, "session": "one", "environment": environment}
            write_journal(store, make_attempt(times, data="real", staging=tier, **facts))


@pytest.mark.usefixtures("campaign")
def test_processes_of_one_case_are_paired_on_their_nodes(steptime: Command) -> None:
    document = json.loads(steptime(*BY_NODE, "--json").stdout)
    assert document["nodes"] == {f"k80-{n}": pytest.approx(1.1, rel=1e-3) for n in range(3)}
    assert document["paired"]["outcome"] == "likely slower"
    assert document["naive"]["outcome"] == "inconclusive"


@pytest.mark.usefixtures("campaign")
@pytest.mark.parametrize("columns", [80, 120])
def test_comparison_by_node_as_text(columns: int, steptime: Command, snapshot: Snapshot) -> None:
    snapshot(f"compare-by-node-{columns}", steptime(*BY_NODE, columns=columns).stdout)


@pytest.mark.usefixtures("campaign")
def test_queries_without_a_common_node_are_an_error(steptime: Command) -> None:
    done = steptime("compare", "data=real (scratch)", "data=tape", "--by-node")
    sentence = "No node has results of both that differ only in data; found 3 of A and 0 of B."
    assert done.returncode == 1 and sentence in done.stderr
