from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from mutations import edit
from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.job import Job
from steptime.store.blobs import Blobs
from steptime.store.check import check
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.imports import Imports
from steptime.store.journal import Journal

Keep = Callable[[Job], Path]
MakeJob = Callable[..., Job]


def import_one(store: FolderStore) -> str:
    data = b"images/sec: 7"
    name = sha256(data).hexdigest()
    with Imports(store.path) as imports:
        imports.keep(
            name, data, [ForeignRun(source="dlbs", original=name, file="a.log", location="line 1")]
        )
    return name


def files(store: FolderStore) -> dict[Path, tuple[int, bytes]]:
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in store.path.rglob("*")
        if path.is_file()
    }


def test_check_counts_everything_and_changes_nothing(
    outcomes: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    compact(outcomes)
    keep(make_job(process=1))
    import_one(outcomes)
    before = files(outcomes)
    report = check(outcomes)
    assert (report.attempts, report.wrong, report.duplicates) == (4, [], 0)
    assert report.journals["ended"] == 1 and report.part_files == {
        "files": 1,
        "attempts": 3,
        "damaged": 0,
    }
    assert report.blobs == {"files": 1, "bytes": 13, "damaged": 0} and report.imports["rows"] == 1
    assert files(outcomes) == before


def test_check_counts_journals_by_state(store: FolderStore, keep: Keep, make_job: MakeJob) -> None:
    keep(make_job())
    keep(make_job()).write_text("{}\n")
    killed, running = make_job(), make_job()
    with Journal(store.journal(killed.id)) as journal:
        journal.begin(killed)
    with Journal(store.journal(running.id)) as journal:
        journal.begin(running)
        report = check(store)
    assert report.journals == {"ended": 1, "running": 1, "without_end": 1, "damaged": 1}
    assert len(report.wrong) == 1


def test_check_counts_duplicates_as_harmless(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    path = keep(make_job())
    text = path.read_text()
    compact(store)
    path.write_text(text)
    report = check(store)
    assert (report.attempts, report.duplicates, report.wrong) == (1, 1, [])


def test_check_reports_two_texts_of_one_id(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    path = keep(make_job())
    text = path.read_text()
    compact(store)
    path.write_text(text)
    edit(path, "mnist-mlp", "lenet5")
    assert "has another text for the same id" in check(store).wrong[0]


def test_check_reports_a_damaged_part(outcomes: FolderStore) -> None:
    compact(outcomes)
    outcomes.parts.paths()[0].write_bytes(b"")
    report = check(outcomes)
    assert report.part_files["damaged"] == 1 and len(report.wrong) == 1


def test_check_reports_a_damaged_blob(store: FolderStore) -> None:
    name = import_one(store)
    Blobs(store.path).path(name).write_bytes(b"images/sec: 8")
    assert name in check(store).wrong[0]


def test_check_reports_rows_without_their_original(store: FolderStore) -> None:
    Blobs(store.path).path(import_one(store)).unlink()
    assert "its original is missing" in check(store).wrong[0]


def test_check_reports_damaged_imported_rows(store: FolderStore) -> None:
    (store.path / "imports" / f"{import_one(store)}.jsonl").write_text("{\n")
    assert "line 1 is damaged" in check(store).wrong[0]


def test_check_counts_drafts_of_killed_writers(outcomes: FolderStore) -> None:
    (outcomes.path / ".x.7.draft").write_text("")
    assert (check(outcomes).drafts, check(outcomes).wrong) == (1, [])


def test_check_needs_a_store(tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="There is no store"):
        check(FolderStore(tmp_path / "none"))
