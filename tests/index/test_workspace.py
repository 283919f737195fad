"""The index follows its store, and ends like one that is made anew, whatever happens."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.job import Job
from steptime.core.record import Attempt, Record
from steptime.index import cache as caching
from steptime.index import table as tables
from steptime.index.cache import Cache
from steptime.index.query import from_url
from steptime.index.workspace import Workspace
from steptime.store import (
    folder_changes,
    listing,
    reader,
)
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.imports import Imports, rows_path
from steptime.store.journal import Journal, uuid7
from steptime.store.merge import merge
from steptime.web.server import make_app

EVERYTHING = from_url("!status=nobody&!plausible=maybe")
Measured = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


@pytest.fixture(scope="module")
def attempt(attempt_of: Any, times_of: Any) -> Attempt:
    made: Attempt = attempt_of(times_of(0, steps=40))
    return made


@pytest.fixture
def measured(store: FolderStore, attempt: Attempt, write: Any) -> Measured:
    """Puts a run into the store; its attempt's id."""

    def make(session: str = "s", process: int = 0, **changes: Any) -> str:
        return str(write(store, replace(attempt, session=session, process=process, **changes)))

    return make


def imported(store: FolderStore, name: str, count: int = 1, **changes: Any) -> Path:
    sha = sha256(name.encode()).hexdigest()
    common = {
        "source": "lambda",
        "original": sha,
        "file": name,
        "metrics": {"throughput": 1.0},
        **changes,
    }
    with Imports(store.path) as imports:
        imports.keep(
            sha, name.encode(), [ForeignRun(**common, location=f"row {i}") for i in range(count)]
        )
    return rows_path(store.path, sha)


def seen(workspace: Workspace) -> list[dict[str, Any]]:
    workspace.expect_changes()
    workspace.refresh()
    return sorted(workspace.index.list_runs(EVERYTHING, 1000), key=lambda row: str(row["id"]))


def test_workspace_shows_new_runs_and_imports_without_a_restart(
    store: FolderStore, measured: Measured
) -> None:
    workspace = Workspace(store)
    assert seen(workspace) == []
    first = measured("one")
    assert [row["id"] for row in seen(workspace)] == [first]
    imported(store, "a", 3)
    measured("two")
    assert len(seen(workspace)) == 5 and seen(workspace) == seen(Workspace(FolderStore(store.path)))


def test_workspace_keeps_the_row_of_a_growing_session(
    store: FolderStore, measured: Measured
) -> None:
    workspace, first = Workspace(store), measured(process=0)
    before = seen(workspace)
    measured(process=1)
    (row,) = seen(workspace)
    found = workspace.find_run(first)
    assert (
        row["id"] == before[0]["id"] == first
        and isinstance(found, Record)
        and len(found.attempts) == 2
    )


def test_workspace_shows_a_run_after_it_ended_or_was_killed(
    store: FolderStore, attempt: Attempt
) -> None:
    workspace = Workspace(store)
    job = Job(
        id=uuid7(), session="s", plan="p", process=0, case=attempt.case, protocol=attempt.protocol
    )
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        assert seen(workspace) == [] and seen(workspace) == []
    assert [row["status"] for row in seen(workspace)] == ["crashed"]


def test_workspace_reads_no_journal_again_after_compaction(
    store: FolderStore, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, first = Workspace(store), measured()
    for number in range(3):
        measured(f"other {number}")
    before = seen(workspace)
    compact(store)
    with monkeypatch.context() as patch:
        patch.setattr(reader, "parse", lambda *_: pytest.fail("read again"))
        assert seen(workspace) == before
    found = workspace.find_run(first)
    assert isinstance(found, Record) and found.attempts[0].id == first


def test_workspace_keeps_rows_if_a_compacted_journal_goes_later(
    store: FolderStore, measured: Measured
) -> None:
    workspace, first = Workspace(store), measured()
    journal = store.journal(first)
    text = journal.read_bytes()
    compact(store)
    journal.write_bytes(text)
    before = seen(workspace)
    journal.unlink()
    assert seen(workspace) == before != [] and workspace.find_run(first)


def test_workspace_replaces_rows_of_changed_and_removed_imports(store: FolderStore) -> None:
    workspace = Workspace(store)
    file = imported(store, "a", 3)
    imported(store, "b", 2)
    assert len(seen(workspace)) == 5
    imported(store, "a", 4, metrics={"throughput": 9.0})
    assert sorted(row["throughput"] for row in seen(workspace)) == [1, 1, 9, 9, 9, 9]
    file.unlink()
    assert len(seen(workspace)) == 2


def test_workspace_drops_removed_runs(
    store: FolderStore, measured: Measured, tmp_path: Path
) -> None:
    """Also where another part still holds one of the attempts."""
    first, second, other = measured("a"), measured("b"), FolderStore(tmp_path / "other")
    merge(other, store)
    workspace = Workspace(store)
    compact(store)
    store.journal(first).write_bytes(other.journal(first).read_bytes())
    third = measured("c")
    other.journal(third).write_bytes(store.journal(third).read_bytes())
    compact(other)
    merge(store, other)
    assert {row["id"] for row in seen(workspace)} == {first, second, third}
    for name in (part.name for part in other.parts.paths()):
        (store.path / "parts" / name).unlink(missing_ok=True)
    seen(workspace)
    assert seen(workspace) == seen(Workspace(FolderStore(store.path))) and len(seen(workspace)) == 3


@pytest.mark.parametrize("seed", range(4))
def test_workspace_that_follows_equals_a_fresh_one(
    store: FolderStore, measured: Measured, attempt: Attempt, tmp_path: Path, seed: int
) -> None:
    rng, workspace = random.Random(seed), Workspace(store)
    other = FolderStore(tmp_path / "other")
    other.make()

    def crash() -> None:
        job = Job(
            id=uuid7(),
            session="k",
            plan="p",
            process=0,
            case=attempt.case,
            protocol=attempt.protocol,
        )
        with Journal(rng.choice([store, other]).journal(job.id)) as journal:
            journal.begin(job)

    def lose() -> None:
        kept = sorted([*store.path.glob("imports/*"), *store.path.glob("journal/*/*/*/*.jsonl")])
        if kept:
            rng.choice(kept).unlink()

    steps: list[Callable[[], Any]] = [
        lambda: measured(rng.choice("abc"), rng.randrange(3)),
        crash,
        lose,
        lambda: compact(store),
        lambda: imported(store, rng.choice("xyz"), rng.randrange(1, 4)),
        lambda: merge(store, other),
        lambda: shutil.rmtree(store.path / "parts", ignore_errors=True),
        lambda: None,
    ]
    for _ in range(14):
        store.make()
        rng.choices(steps, [6, 2, 1, 2, 3, 1, 0.5, 1])[0]()
        if rng.random() < 0.6:
            seen(workspace)
    seen(workspace)
    assert seen(workspace) == seen(Workspace(FolderStore(store.path)))


def test_workspace_does_not_list_a_settled_folder_again(
    store: FolderStore, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, file = Workspace(store), imported(store, "a")
    first = measured()
    for folder in (file.parent, *store.journal(first).parents[:4]):
        os.utime(folder, (1, 1))
    seen(workspace)
    with monkeypatch.context() as patch:
        patch.setattr(listing.os, "listdir", lambda *_: pytest.fail("listed again"))
        assert len(seen(workspace)) == 2
    measured("new")
    assert len(seen(workspace)) == 3


@pytest.mark.parametrize(
    "damage",
    [
        b"{",
        b"[1]",
        b"{}",
        b"\xff\xfe",
        b'{"id": "a"',
        b'"text"',
        b"null",
        b'{"id": "\xff"}',
        b"x" * 20_000_000,
    ],
)
def test_workspace_reports_a_damaged_import_line_and_shows_the_rest(
    store: FolderStore, damage: bytes
) -> None:
    workspace, file = Workspace(store), imported(store, "a", 3)
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([lines[0], damage, *lines[1:], b""]))
    assert (
        len(seen(workspace)) == 3
        and "line 2 is damaged" in store.problems[0]
        and len(store.problems) == 1
    )


def test_workspace_omits_imported_values_that_do_not_fit(store: FolderStore) -> None:
    dimensions = {
        "model": "ü\0</b>",
        "devices": "8",
        "replica_batch": "many",
        "framework_version": 2.5,
        "odd": 1,
    }
    metrics = {
        "throughput": 0.1 + 0.2,
        "step_time": "0.5",
        "power": float("nan"),
        "energy": float("inf"),
        "cost": None,
    }
    imported(store, "a", dimensions=dimensions, metrics=metrics, quarantine="19 times on 8")
    imported(store, "b", failure="out of memory", started="2017-01-01")
    doubted, failed = sorted(seen(Workspace(store)), key=lambda row: str(row["started"]))
    assert (doubted["model"], doubted["devices"], doubted["framework_version"]) == (
        "ü\0</b>",
        8.0,
        "2.5",
    )
    assert (doubted["throughput"], doubted["step_time"]) == (0.1 + 0.2, 0.5)
    assert [doubted[name] for name in ("replica_batch", "power", "energy", "cost")] == [None] * 4
    assert (doubted["status"], doubted["plausible"], doubted["source"]) == ("ok", "no", "lambda")
    assert (failed["status"], failed["plausible"], failed["started"]) == (
        "failed",
        "yes",
        "2017-01-01",
    )


def test_workspace_reports_a_damaged_part_once_and_shows_the_rest(
    store: FolderStore, measured: Measured
) -> None:
    workspace = Workspace(store)
    measured("a")
    compact(store)
    store.parts.paths()[0].write_bytes(b"")
    measured("b")
    assert len(seen(workspace)) == len(seen(workspace)) == 1
    assert len(store.problems) == 1 and "left as it is" in store.problems[0]


def test_workspace_answers_from_the_index_if_the_store_fails(
    store: FolderStore, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(store)
    measured()
    before = seen(workspace)
    monkeypatch.setattr(
        store, "news", lambda seen: (_ for _ in ()).throw(SteptimeError("“It”\ndoes not answer."))
    )
    assert seen(workspace) == before and workspace.trouble == "“It”\ndoes not answer."
    client = testclient.TestClient(make_app(workspace), base_url="http://127.0.0.1:8765")
    page, numbers = client.get("/"), client.get("/api/v1/chart")
    assert (page.status_code, numbers.status_code) == (200, 200) and "does not answer." in page.text
    assert numbers.headers["X-Steptime-Trouble"] == "\\u201cIt\\u201d does not answer."


def test_workspace_reports_a_store_that_is_gone_until_it_is_back(
    store: FolderStore, measured: Measured
) -> None:
    workspace, elsewhere = Workspace(store), store.path.with_name("moved")
    measured("journal")
    imported(store, "import")
    before = seen(workspace)
    store.path.rename(elsewhere)
    store.path.mkdir()  # as where a disk was mounted
    assert seen(workspace) == before and f"{store.path}/STORE.json existed" in workspace.trouble
    store.path.rmdir()
    elsewhere.rename(store.path)
    assert seen(workspace) == before and not workspace.trouble


@pytest.mark.parametrize(
    "page", ["/", "/runs", "/compare", "/history", "/certificates", "/machines", "/run/{}"]
)
def test_every_page_reports_a_store_that_is_gone(
    store: FolderStore, measured: Measured, page: str
) -> None:
    workspace, name = Workspace(store), measured()
    seen(workspace)
    shutil.rmtree(store.path)
    workspace.expect_changes()
    answer = testclient.TestClient(make_app(workspace), base_url="http://127.0.0.1:8765").get(
        page.format(name), headers={"Accept": "text/html"}
    )
    assert "The store is gone" in answer.text and "No results match" not in answer.text
    assert (
        ("cannot be read any more" in answer.text)
        is (answer.status_code == 404)
        is (page == "/run/{}")
    )
    assert not store.path.exists()


def test_workspace_forgets_only_the_part_of_a_store_that_is_gone(
    store: FolderStore, measured: Measured
) -> None:
    workspace, name = Workspace(store), measured("a")
    imported(store, "import")
    seen(workspace)
    shutil.rmtree(store.path / "imports")
    assert [row["id"] for row in seen(workspace)] == [name] and not workspace.trouble


def test_workspace_reports_a_store_of_a_newer_version(
    store: FolderStore, measured: Measured
) -> None:
    workspace, _ = Workspace(store), measured()
    before = seen(workspace)
    (store.path / "STORE.json").write_text('{"format": 99}')
    assert seen(workspace) == before and "Use a newer steptime" in workspace.trouble


def test_workspace_reports_a_full_disk(
    store: FolderStore, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    workspace, _ = Workspace(store), measured("a")
    before = seen(workspace)
    monkeypatch.setattr(tables, "NamedTemporaryFile", full)
    measured("b")
    assert seen(workspace) == before and "No space left on device. It lies in" in workspace.trouble
    with pytest.raises(SteptimeError, match="cannot be written"):
        Workspace(store).refresh()
    monkeypatch.undo()
    assert len(seen(workspace)) == 2 and not workspace.trouble


def test_workspace_answers_many_threads_during_changes(
    store: FolderStore, measured: Measured
) -> None:
    workspace, counts = Workspace(store), list[int]()

    def ask() -> None:
        for _ in range(20):
            seen(workspace)
            counts.append(workspace.index.count_runs(EVERYTHING, valued=False))

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for one in askers:
        one.start()
    for number in range(6):
        measured(f"session {number}")
    for one in askers:
        one.join()
    assert len(counts) == 60 and len(seen(workspace)) == 6


def test_cache_spares_the_next_process_all_reading(
    store: FolderStore, measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "WORTH_SECONDS", 0.0)
    measured()
    imported(store, "a", 3)
    before = seen(Workspace(store, Cache("here", tmp_path / "cache")))
    with monkeypatch.context() as patch:
        for name in ("_read_journal", "_read_import"):
            patch.setattr(folder_changes, name, lambda *_: pytest.fail("read again"))
        workspace = Workspace(FolderStore(store.path), Cache("here", tmp_path / "cache"))
        assert seen(workspace) == before
    imported(store, "b")
    assert (
        len(seen(workspace)) == 5
        and len(seen(Workspace(store, Cache("elsewhere", tmp_path / "cache")))) == 5
    )


@pytest.mark.parametrize("damage", ["noise", "half", "empty"])
def test_cache_that_is_damaged_is_made_again(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(caching, "WORTH_SECONDS", 0.0)
    imported(store, "a", 3)
    cache = Cache("here", tmp_path / "cache")
    before = seen(Workspace(store, cache))
    (path,) = cache.published_files()
    content = path.read_bytes()
    path.write_bytes(
        {"noise": b"noise" * 5000, "half": content[: len(content) // 2], "empty": b""}[damage]
    )
    assert seen(Workspace(FolderStore(store.path), Cache("here", tmp_path / "cache"))) == before


def test_cache_does_not_publish_a_quickly_made_index(store: FolderStore, tmp_path: Path) -> None:
    imported(store, "a")
    workspace = Workspace(store, Cache("here", tmp_path / "cache"))
    seen(workspace)
    workspace.close()
    assert not (tmp_path / "cache").exists()


def test_original_file_is_a_download_and_never_shown(
    store: FolderStore,
) -> None:
    imported(store, "a/b <c>.html")
    guide = testclient.TestClient(make_app(Workspace(store)), base_url="http://127.0.0.1:8765")
    run = seen(Workspace(store))[0]["id"]
    answer = guide.get(f"/run/{run}/original")
    assert (answer.content, answer.headers["content-type"]) == (
        b"a/b <c>.html",
        "application/octet-stream",
    )
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''b%20%3Cc%3E.html"
    assert guide.get("/run/nobody/original").status_code == 404


def test_every_page_reports_what_could_not_be_read(store: FolderStore, measured: Measured) -> None:
    measured()
    (store.path / "parts").mkdir()
    (store.path / "parts" / f"2026-01-01.{'0' * 64}.parquet").write_bytes(b"PAR1 <b>not</b>")
    guide = testclient.TestClient(make_app(Workspace(store)), base_url="http://127.0.0.1:8765")
    for path in ("/", "/runs", "/machines"):
        text = guide.get(path).text
        assert "1 problem while reading this store" in text and "2026-01-01.0000" in text


def test_cache_key_depends_on_every_maker_of_rows() -> None:
    names = {path.name for path in caching.maker_files()}
    for pattern in caching.MAKERS:
        package = Path(caching.__file__).parents[1]
        assert list(package.glob(pattern)), f"{pattern} names no file"
    assert {"result.py", "rows.py", "sql.py", "cells.py", "imported.py"} <= names
