from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    """The folder that the command finds by itself, with two attempts."""
    store = FolderStore(tmp_path / "results")
    for _ in range(2):
        job = Job(
            id=uuid7(),
            session="s",
            plan="p",
            process=0,
            case=Case(workload="lenet5"),
            protocol=Protocol(),
        )
        with Journal(store.journal(job.id)) as journal:
            journal.begin(job)
            journal.write_findings({})
    return store


def test_a_sound_store_is_compacted_and_still_sound(steptime: Callable, store: FolderStore) -> None:
    done = steptime("store", "compact")
    assert (done.returncode, done.stderr) == (
        0,
        "",
    ) and "2 journals moved into 1 part" in done.stdout
    found = json.loads(steptime("store", "check", "--json").stdout)
    assert (found["attempts"], found["journals"]["ended"], found["part_files"]["attempts"]) == (
        2,
        0,
        2,
    )


def test_what_is_wrong_is_listed_with_exit_code_1(steptime: Callable, store: FolderStore) -> None:
    victim = next(store.path.rglob("*.jsonl"))
    victim.write_text("{}\n")
    done = steptime("store", "check")
    assert done.returncode == 1 and f"wrong: {victim.relative_to(store.path.parent)}" in done.stdout


def test_a_store_is_merged_from_another_folder(steptime: Callable, store: FolderStore) -> None:
    done = steptime("--store", "all", "store", "merge", "results")
    assert done.returncode == 0 and "journals 2" in done.stdout
    assert (
        json.loads(steptime("--store", "all", "store", "merge", "results", "--json").stdout)[
            "copied"
        ]
        == {}
    )


def test_an_unreachable_database_is_a_sentence(steptime: Callable, store: FolderStore) -> None:
    done = steptime("store", "push", "postgresql://me:secret@127.0.0.1:1/team")
    assert done.returncode == 1 and done.stderr.startswith(
        "error: The database postgresql://127.0.0.1:1/team"
    )
    assert "secret" not in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert len(list(store.path.rglob("*.jsonl"))) == 2


def test_a_store_is_needed(steptime: Callable) -> None:
    for words in (["check"], ["compact"], ["merge", "elsewhere"]):
        done = steptime("store", *words)
        assert done.returncode == 1 and done.stderr.startswith("error: ")


def test_store_convert_writes_a_new_store_of_an_old_one(steptime: Callable, tmp_path: Path) -> None:
    old = Path(__file__).parents[2] / "fixtures" / "store-v1"
    done = steptime("store", "convert", str(old), "new")
    assert done.returncode == 0, done.stderr
    assert "journals 19" in done.stdout
    again = json.loads(steptime("store", "convert", str(old), "new", "--json").stdout)
    assert again["converted"] == {}
    assert json.loads(steptime("--store", "new", "store", "check", "--json").stdout)["wrong"] == []


def test_old_store_is_answered_with_one_sentence(steptime: Callable) -> None:
    old = Path(__file__).parents[2] / "fixtures" / "store-v1"
    done = steptime("--store", str(old), "list", "results")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: The store {old} has format 1")
    assert f"steptime store convert {old} NEW" in done.stderr
    assert "Traceback" not in done.stderr
