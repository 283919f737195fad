from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.record import Failure
from steptime.ranks import launcher

OUT = Failure(cause=Cause.OUT_OF_MEMORY, reason="MemoryError: too large")
LOST = Failure(cause=Cause.CRASHED, reason="RuntimeError: connection closed by peer")
TWO = Case(workload="lenet5", exchange="independent", devices=2)


def test_memory_is_the_cause_whoever_told_first() -> None:
    found = launcher.root_failure({"Rank 0 of 2": LOST, "Rank 1 of 2": OUT}, {})
    assert found == Failure(cause=Cause.OUT_OF_MEMORY, reason="Rank 1 of 2: MemoryError: too large")


def test_a_killed_rank_can_say_nothing_and_so_comes_before_those_that_miss_it() -> None:
    killed = launcher.exit_failure("Rank 1 of 2", -signal.SIGKILL, by_memory=False)
    assert launcher.root_failure({"Rank 0 of 2": LOST}, {"Rank 1 of 2": killed}) == killed


def test_the_earliest_note_is_the_cause(tmp_path: Path) -> None:
    journal = tmp_path / "a.jsonl"
    for time_ns, rank, failure in (
        (2, 0, LOST),
        (1, 1, Failure(cause=Cause.CRASHED, reason="ValueError: first")),
    ):
        launcher.write_note(journal, rank, failure)
        os.utime(tmp_path / f"a.rank{rank}.json", ns=(time_ns, time_ns))
    found = launcher.root_failure(launcher.collect_notes(journal, 2), {})
    assert (
        found is not None
        and found.reason == "Rank 1 of 2: ValueError: first"
        and not list(tmp_path.iterdir())
    )


def test_a_damaged_note_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.rank1.json").write_text('{"cause": "cra')
    assert launcher.collect_notes(tmp_path / "a.jsonl", 2) == {} and not list(tmp_path.iterdir())


def test_what_holds_for_every_rank_names_none() -> None:
    failure = Failure(cause=Cause.UNSUPPORTED, reason="no fp64")
    assert launcher.root_failure({"Rank 0 of 2": failure, "Rank 1 of 2": failure}, {}) == failure


def test_a_kill_for_want_of_memory_is_told_from_any_other() -> None:
    assert (
        launcher.exit_failure("Rank 1 of 2", -signal.SIGKILL, by_memory=True).cause
        == "out_of_memory"
    )
    assert (
        launcher.exit_failure("Rank 1 of 2", -signal.SIGSEGV, by_memory=True).reason
        == "Rank 1 of 2 was killed by SIGSEGV."
    )


def start(text: str, folder: Path) -> Failure | None:
    return launcher.run_ranks(
        [sys.executable, "-c", f"import os, time\nrank = os.environ['RANK']\n{text}"],
        TWO,
        folder / "a.jsonl",
    )


@pytest.mark.live
def test_ranks_that_end_well_are_no_failure(tmp_path: Path) -> None:
    assert start("assert os.environ['WORLD_SIZE'] == '2'", tmp_path) is None


@pytest.mark.live
def test_a_rank_that_waits_for_a_lost_one_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "GRACE_SECONDS", 0.1)
    failure = start("time.sleep(1000) if rank == '0' else os.kill(os.getpid(), 11)", tmp_path)
    assert failure == Failure(cause=Cause.CRASHED, reason="Rank 1 of 2 was killed by SIGSEGV.")


def test_two_free_ports_are_found() -> None:
    port = launcher.find_free_port()
    with socket.create_server(("", port)), socket.create_server(("", port + 1)):
        pass


def test_several_nodes_need_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(SteptimeError, match="2 nodes need Slurm"):
        launcher.run_ranks(
            ["true"],
            Case(workload="lenet5", exchange="independent", devices=2, nodes=2),
            tmp_path / "a.jsonl",
        )
