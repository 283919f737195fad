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


def test_root_failure_prefers_out_of_memory() -> None:
    failure = launcher.root_failure({"Rank 0 of 2": LOST, "Rank 1 of 2": OUT}, {})
    assert failure == Failure(
        cause=Cause.OUT_OF_MEMORY, reason="Rank 1 of 2: MemoryError: too large"
    )


def test_root_failure_prefers_killed_rank_to_noted_ones() -> None:
    killed = launcher.exit_failure("Rank 1 of 2", -signal.SIGKILL, by_memory=False)
    assert launcher.root_failure({"Rank 0 of 2": LOST}, {"Rank 1 of 2": killed}) == killed


def test_root_failure_is_the_earliest_note(tmp_path: Path) -> None:
    journal = tmp_path / "a.jsonl"
    for time_ns, rank, failure in (
        (2, 0, LOST),
        (1, 1, Failure(cause=Cause.CRASHED, reason="ValueError: first")),
    ):
        launcher.write_note(journal, rank, failure)
        os.utime(tmp_path / f"a.rank{rank}.json", ns=(time_ns, time_ns))
    failure = launcher.root_failure(launcher.collect_notes(journal, 2), {})
    assert (
        failure is not None
        and failure.reason == "Rank 1 of 2: ValueError: first"
        and not list(tmp_path.iterdir())
    )


def test_collect_notes_skips_damaged_note(tmp_path: Path) -> None:
    (tmp_path / "a.rank1.json").write_text('{"cause": "cra')
    assert launcher.collect_notes(tmp_path / "a.jsonl", 2) == {} and not list(tmp_path.iterdir())


def test_root_failure_names_no_rank_if_it_holds_for_all() -> None:
    failure = Failure(cause=Cause.UNSUPPORTED, reason="no fp64")
    assert launcher.root_failure({"Rank 0 of 2": failure, "Rank 1 of 2": failure}, {}) == failure


def test_exit_failure_separates_oom_kill_from_other_signals() -> None:
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
def test_run_ranks_returns_none_on_success(tmp_path: Path) -> None:
    assert start("assert os.environ['WORLD_SIZE'] == '2'", tmp_path) is None


@pytest.mark.live
def test_run_ranks_ends_ranks_that_wait_for_a_lost_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "GRACE_SECONDS", 0.1)
    failure = start("time.sleep(1000) if rank == '0' else os.kill(os.getpid(), 11)", tmp_path)
    assert failure == Failure(cause=Cause.CRASHED, reason="Rank 1 of 2 was killed by SIGSEGV.")


def test_find_free_port_finds_consecutive_ports() -> None:
    port = launcher.find_free_port()
    with socket.create_server(("", port)), socket.create_server(("", port + 1)):
        pass


def test_run_ranks_on_several_nodes_needs_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(SteptimeError, match="2 nodes need Slurm"):
        launcher.run_ranks(
            ["true"],
            Case(workload="lenet5", exchange="independent", devices=2, nodes=2),
            tmp_path / "a.jsonl",
        )
