"""Campaigns at a glance, with a `squeue` that says what the test wants."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Failure
from steptime.run.slurm import overview
from steptime.run.slurm.folder import CampaignFolder, Key, slot_of
from steptime.run.slurm.overview import Overview
from steptime.store import journal
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderStore:
    monkeypatch.setattr(overview, "FRESH_SECONDS", 0.0)
    return FolderStore(tmp_path / "results")


def made(store: FolderStore, title: str = "A title") -> CampaignFolder:
    """Three processes in one array, number 7."""
    folder = CampaignFolder(store, uuid7())
    folder.make({"plan": "p", "name": "n", "title": title, "started": "2026-01-01T00:00:00+00:00"})
    folder.set_number(folder.add_array([[job(folder, size)] for size in (1, 2, 3)], ""), "7")
    return folder


def job(folder: CampaignFolder, size: int) -> Job:
    case = Case(workload="mnist-mlp", batch_size=size, node_type="k80" if size < 3 else "p100")
    return Job(
        id=uuid7(), session=folder.session, plan="p", process=0, case=case, protocol=Protocol()
    )


def finish(folder: CampaignFolder, size: int) -> None:
    (folder.path / "results" / slot_of(job(folder, size))).symlink_to("somewhere")


def fail(folder: CampaignFolder, size: int) -> None:
    lost = replace(job(folder, size), id=uuid7())
    path = folder.journal(Key(slot_of(lost), f"7_{size - 1}", 0))
    journal.close_failed(path, lost, Failure(cause=Cause.TIMED_OUT, reason="It took too long."))
    folder.deliver(path)


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lists tasks of the folder's array by their states, and counts how often it is asked."""

    def say(folder: CampaignFolder | None, *states: str) -> None:
        name = folder.name(folder.array_folders()[0]) if folder else ""
        lines = [
            f"7|{index}|{name}|{state}|None|n{index}|1:00|0|0|"
            for index, state in enumerate(states)
            if state
        ]
        text = "exit 1" if folder is None else "\n".join(["cat <<END", *lines, "END"])
        path = tmp_path / "programs" / "squeue"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\n{text}\n")
        path.chmod(0o755)
        path.with_name("sacct").write_text("#!/bin/sh\nexit 1\n")
        path.with_name("sacct").chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")

    return say


def test_overview_of_an_empty_store_is_empty(store: FolderStore) -> None:
    assert Overview(store)() == []


def test_overview_counts_by_node_type(store: FolderStore, squeue: Callable[..., None]) -> None:
    folder = made(store)
    finish(folder, 1)
    squeue(folder, "", "RUNNING", "PENDING")
    (found,) = Overview(store)()
    assert (found["name"], found["done"], found["processes"], found["is_over"]) == (
        "A title",
        1,
        3,
        False,
    )
    assert found["kinds"] == [
        {"name": "k80", "waiting": 0, "running": 1, "done": 1, "failed": 0},
        {"name": "p100", "waiting": 1, "running": 0, "done": 0, "failed": 0},
    ]
    assert found["seconds_left"] is None and found["basis"] == ""


def test_overview_says_what_the_time_left_is_based_on(
    store: FolderStore, squeue: Callable[..., None]
) -> None:
    folder = made(store)
    for size in (1, 2):
        finish(folder, size)
    squeue(folder, "", "", "PENDING")
    assert Overview(store)()[0]["basis"] == "as fast as the last 2 results came in"


def test_overview_lists_failures_with_their_causes(
    store: FolderStore, squeue: Callable[..., None]
) -> None:
    folder = made(store)
    finish(folder, 1)
    fail(folder, 2)
    squeue(folder, "", "", "RUNNING")
    (found,) = Overview(store)()
    assert found["failed"] == 1 and found["causes"] == {"timed_out": 1}
    assert found["failures"] == [
        {"case": "batch size 2, node type k80", "cause": "timed_out", "reason": "It took too long."}
    ]


def test_overview_asks_a_silent_slurm_once(
    store: FolderStore, squeue: Callable[..., None], tmp_path: Path
) -> None:
    for folder in (made(store), made(store)):
        finish(folder, 1)
    squeue(None)
    found = Overview(store)()
    assert [(one["done"], one["processes"]) for one in found] == [(1, 3)] * 2
    assert all("squeue" in one["trouble"] for one in found)
    assert (tmp_path / "asked").read_text().count("asked") == 1


def test_overview_needs_no_slurm_for_finished_campaigns(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = made(store)
    for size in (1, 2, 3):
        finish(folder, size)
    (found,) = Overview(store)()
    assert found["is_over"] and found["failed"] == 0 and "trouble" not in found


def test_overview_is_cached_for_a_short_while(
    store: FolderStore, squeue: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(overview, "FRESH_SECONDS", 60.0)
    squeue(made(store), "PENDING", "PENDING", "PENDING")
    look = Overview(store)
    assert look() == look() and (tmp_path / "asked").read_text().count("asked") == 1


def test_overview_shows_other_campaigns_than_a_damaged_one(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "results")
    whole, damaged = made(store), made(store)
    for size in (1, 2, 3):
        finish(whole, size)
    (damaged.path / "campaign.json").write_text("{")
    assert [summary["campaign"] for summary in Overview(store)()] == [whole.session]
