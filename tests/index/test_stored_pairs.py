"""Matched runs measured here have the verdict that `steptime compare` gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[report]'")

from factories import ACCURACY, make_attempt, make_times, write_journal
from steptime.analysis.session_deviation import read_history, session_value
from steptime.analysis.stored import compare_stored
from steptime.index.query import from_url
from steptime.index.stored_pairs import compare_rows
from steptime.index.workspace import Workspace
from steptime.report.summary import headline
from steptime.store.folder import FolderStore

Write = Callable[..., None]
NETWORK = {"fingerprint": "f", "unit": "images", "units_per_step": 32, "flops_per_step": 1000}


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "results")


@pytest.fixture
def write(store: FolderStore) -> Write:
    """A session of one case. Its processes differ by 1 %."""

    def write_session(session: str, level: float = 1.0, processes: int = 8, **changes: Any) -> None:
        for process in range(processes):
            seed = sum(map(ord, session)) * 100 + process
            times = make_times(seed, centre_ns=1e6 * level)
            facts = {"session": session, "process": process, "network": NETWORK}
            write_journal(store, make_attempt(times, **facts, **changes))

    return write_session


def compare(store: FolderStore, a: str, b: str, metric: str = "throughput") -> Any:
    workspace = Workspace(store)
    sides = [workspace.index.list_runs(from_url(f"session={name}")) for name in (a, b)]
    return compare_rows(workspace, metric, *sides)


def stored_verdict(store: FolderStore, a: str, b: str) -> Any:
    records = {record.session: record for record in store.records()}
    history = [value for record in store.records() if (value := session_value(record))]
    return compare_stored([(records[a], records[b])], history).rows[0].verdict


@pytest.mark.parametrize("level", [0.5, 1.1, 1.4])
def test_compare_rows_gives_the_interval_of_a_stored_comparison(
    level: float, store: FolderStore, write: Write
) -> None:
    for number in range(4):
        write(f"earlier{number}", 1 + 0.02 * number)
    write("first")
    write("second", level)
    verdict = stored_verdict(store, "first", "second")
    (pair,) = compare(store, "first", "second", "step_time").pairs
    assert (pair.ratio, pair.low, pair.high) == pytest.approx(
        (verdict.ratio, verdict.low, verdict.high)
    )
    (pair,) = compare(store, "first", "second").pairs
    assert (pair.ratio, pair.low, pair.high) == pytest.approx(
        (1 / verdict.ratio, 1 / verdict.high, 1 / verdict.low)
    )
    assert pair.verdict.startswith("likely") == verdict.outcome.startswith("likely")


def test_compare_rows_calls_faster_likely_better(store: FolderStore, write: Write) -> None:
    write("first")
    write("second", 0.5)
    for metric in ("step_time", "throughput"):
        table = compare(store, "first", "second", metric)
        assert table.pairs[0].verdict == "likely better"
        assert table.deviations == ("3 % (assumed: too few earlier sessions on this machine)",)


def test_compare_rows_learns_from_the_index(store: FolderStore, write: Write) -> None:
    for number in range(6):
        write(f"earlier{number}", 1.2 ** (number % 2))
    write("first")
    write("second", 1.3)
    table = compare(store, "first", "second")
    assert "learned from 6 sessions" in table.deviations[0]
    assert table.pairs[0].verdict == "same or inconclusive"


def test_workspace_session_history_is_that_of_the_records(store: FolderStore, write: Write) -> None:
    write("first")
    write("second", 1.3)
    write("paired", pair="p")
    values = [session_value(record) for record in store.records()]
    machine = next(value.machine for value in values if value)
    history = Workspace(store).session_history([machine])
    assert sorted(history) == sorted(read_history(store.records(), {machine}))
    assert len(history) == 2


def test_workspace_session_history_follows_a_growing_record(
    store: FolderStore, write: Write
) -> None:
    write("first", processes=3)
    workspace = Workspace(store)
    machine = next(value.machine for r in store.records() if (value := session_value(r)))
    (before,) = workspace.session_history([machine])
    write("first", 2.0, processes=5)
    workspace.expect_changes()
    (after,) = workspace.session_history([machine])
    assert after.log_seconds > before.log_seconds


def test_compare_rows_gives_no_verdict_to_pairs_that_it_does_not_read(
    store: FolderStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steptime.index.stored_pairs.MOST_COMPARED", 1)
    for batch in (16, 64):
        write("first", batch_size=batch)
        write("second", 2.0, batch_size=batch)
    table = compare(store, "first", "second")
    verdicts = sorted((pair.verdict, pair.low is None) for pair in table.pairs)
    assert table.unread == 1 and verdicts == [("likely worse", False), ("unknown", True)]


def test_compare_rows_refuses_an_invalid_result(store: FolderStore, write: Write) -> None:
    write("first")
    write("second", 0.5, processes=2, steady=False)
    write("second", 0.5, processes=4)
    (pair,) = compare(store, "first", "second").pairs
    assert (pair.verdict, pair.low) == ("refused", None)
    assert "no_steady_state" in pair.refused


def test_compare_rows_lists_what_else_differs(store: FolderStore, write: Write) -> None:
    write("first", software={"python": "3.11"}, machine={"kernel": "5.15", "host": "n"})
    write("second", software={"python": "3.12"}, machine={"kernel": "6.18", "host": "n"})
    facts = compare(store, "first", "second").facts
    assert facts["machine: kernel"] == ("5.15", "6.18")
    assert facts["software: python"] == ("3.11", "3.12")


def test_compare_rows_claims_nothing_about_means_of_two_sessions(
    store: FolderStore, write: Write
) -> None:
    write("first")
    write("second", 0.5)
    (pair,) = compare(store, "first", "second", "mean_time").pairs
    assert (pair.verdict, pair.low) == ("unknown", None)


def test_compare_rows_keeps_workers_of_compare_apart(store: FolderStore, write: Write) -> None:
    write("first")
    write("second", pair="p")
    assert compare(store, "first", "second").differs["command"] == ("run", "compare")


def test_headline_of_two_precisions_has_the_accuracy_loss(store: FolderStore, write: Write) -> None:
    write("first", phase="inference")
    write("second", 0.5, phase="inference", precision="int8", findings={"accuracy": ACCURACY})
    workspace = Workspace(store)
    query = from_url("by=precision")
    text = headline(workspace, query, workspace.index.list_runs(query))
    assert "int8 is likely better" in text
    assert "int8's accuracy loss: top-1 agreement 98.7 % (97.9 … 99.2) with fp32" in text
