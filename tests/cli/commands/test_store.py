"""`steptime store …`: check, compact, push, merge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Command, Snapshot
from steptime.core.case import Case
from steptime.store.folder import FolderStore


@pytest.fixture
def store(tmp_path: Path, store_session: Callable[..., list[str]]) -> FolderStore:
    """The folder that the command reads by default, with two attempts."""
    store_session([Case(workload="lenet5")], processes=2)
    return FolderStore(tmp_path / "results")


def test_texts_of_check_compact_and_merge(
    steptime: Command, store: FolderStore, snapshot: Snapshot
) -> None:
    texts = []
    for line in (
        "store check",
        "--store other store merge results",
        "--store other store merge results",
        "store compact",
        "store check",
    ):
        done = steptime(*line.split())
        assert (done.returncode, done.stderr) == (0, ""), line
        texts.append(f"$ steptime {line}\n{done.stdout}")
    snapshot("store", "\n".join(texts))


def test_a_compacted_store_keeps_its_attempts(steptime: Command, store: FolderStore) -> None:
    steptime("store", "compact")
    document = json.loads(steptime("store", "check", "--json").stdout)
    assert document["attempts"] == 2 and document["journals"]["ended"] == 0


def test_check_lists_what_is_wrong_and_exits_1(steptime: Command, store: FolderStore) -> None:
    victim = next(store.path.rglob("*.jsonl"))
    victim.write_text("{}\n")
    done = steptime("store", "check")
    assert done.returncode == 1
    assert f"wrong: {victim.relative_to(store.path.parent)}" in done.stdout


def test_merging_twice_copies_nothing(steptime: Command, store: FolderStore) -> None:
    steptime("--store", "all", "store", "merge", "results")
    again = steptime("--store", "all", "store", "merge", "results", "--json")
    assert json.loads(again.stdout)["copied"] == {}


def test_push_to_an_unreachable_database_shows_no_password(
    steptime: Command, store: FolderStore
) -> None:
    pytest.importorskip("psycopg")
    done = steptime("store", "push", "postgresql://me:secret@127.0.0.1:1/team")
    assert done.returncode == 1
    assert done.stderr.startswith("error: The database postgresql://127.0.0.1:1/team")
    assert "secret" not in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert len(list(store.path.rglob("*.jsonl"))) == 2
