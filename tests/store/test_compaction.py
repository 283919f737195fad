from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mutations import edit
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.store import compaction, parts
from steptime.store.atomic import NotWritten
from steptime.store.compaction import DEAD_DRAFT_SECONDS, ORDERS_SECONDS, compact
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7

Keep = Callable[[Job], Path]
MakeJob = Callable[..., Job]


def left(store: FolderStore) -> list[Path]:
    return sorted(store.path.rglob("*.jsonl"))


def aged(path: Path, seconds: float) -> None:
    then = path.stat().st_mtime - seconds - 1
    os.utime(path, (then, then))


def test_compact_moves_ended_journals_into_one_part_per_day(outcomes: FolderStore) -> None:
    done = compact(outcomes)
    assert (done.moved, len(done.part_files), done.problems, left(outcomes)) == (3, 1, [], [])
    assert len(outcomes.attempts()) == 2 and len(outcomes.attempts("certify")) == 1


def test_compact_writes_one_part_for_each_day(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    keep(make_job(id="019a8c1e-5b7e-7c31-9a52-0d6f1c2b3a44"))
    keep(make_job(id="019a9c1e-5b7e-7c31-9a52-0d6f1c2b3a44"))
    assert [name[:10] for name in compact(store).part_files] == ["2025-11-16", "2025-11-19"]


def test_compact_splits_a_large_day_into_parts(
    store: FolderStore, keep: Keep, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_CHARACTERS", 1)
    before = [keep(make_job()) for _ in range(3)]
    assert len(compact(store).part_files) == 3
    assert [attempt.id for attempt in store.attempts()] == [path.stem for path in before]


def test_compact_again_changes_nothing(outcomes: FolderStore) -> None:
    compact(outcomes)
    before = outcomes.parts.paths()
    done = compact(outcomes)
    assert (done.moved, done.finished, outcomes.parts.paths()) == (0, 0, before)


def test_compact_leaves_running_and_unended_journals(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    keep(make_job())
    killed, running = make_job(), make_job()
    with Journal(store.journal(killed.id)) as journal:
        journal.begin(killed)
    with Journal(store.journal(running.id)) as journal:
        journal.begin(running)
        done = compact(store)
        assert (done.moved, done.left) == (1, {"without_end": 1, "running": 1})
    assert [path.stem for path in left(store)] == [killed.id, running.id]


def test_compact_leaves_an_ended_journal_while_its_writer_lives(
    store: FolderStore, make_job: MakeJob
) -> None:
    job = make_job()
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        journal.write_findings({})
        assert compact(store).left == {"running": 1}
    assert compact(store).moved == 1


def test_compact_leaves_an_unread_journal_for_a_day(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    path = keep(make_job())
    path.with_suffix(".case.json").write_text("{}")
    assert compact(store).left == {"awaited": 1}
    aged(path, ORDERS_SECONDS)
    assert compact(store).moved == 1


def test_compact_leaves_and_reports_a_damaged_journal(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    keep(make_job())
    bad = keep(make_job())
    bad.write_bytes(bad.read_bytes().replace(b"sample", b"s\xffmple"))
    done = compact(store)
    assert (done.moved, done.left, left(store)) == (1, {"damaged": 1}, [bad])
    assert str(bad) in done.problems[0]


def test_compact_removes_a_journal_that_a_part_holds(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    path = keep(make_job())
    text = path.read_text()
    compact(store)
    path.write_text(text)
    done = compact(store)
    assert (done.moved, done.finished, done.part_files, left(store)) == (0, 1, [], [])


def test_compact_keeps_and_reports_another_text_of_an_id(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    path = keep(make_job())
    text = path.read_text()
    compact(store)
    path.write_text(text)
    edit(path, "mnist-mlp", "lenet5")
    done = compact(store)
    assert left(store) == [path] and "another text for this id" in done.problems[0]


def test_compact_writes_one_row_for_two_journals_of_one_id(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    path = keep(make_job())
    path.with_name(f"{uuid7()}.jsonl").write_text(path.read_text())
    assert compact(store).moved == 2
    assert len(store.attempts()) == 1 and left(store) == []


def test_compact_does_not_rely_on_a_damaged_part(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    path = keep(make_job())
    text = path.read_text()
    compact(store)
    (part,) = store.parts.paths()
    part.write_bytes(b"")
    path.write_text(text)
    done = compact(store)
    assert done.moved == 1 and str(part) in done.problems[0] and part.exists()
    assert [attempt.id for attempt in FolderStore(store.path).attempts()] == [path.stem]


def test_compact_runs_one_at_a_time(store: FolderStore, keep: Keep, make_job: MakeJob) -> None:
    keep(make_job())
    with (
        store.hold("compact"),
        pytest.raises(SteptimeError, match=r"being compacted in .* by another process"),
    ):
        compact(store)


def test_compact_removes_only_old_drafts(outcomes: FolderStore) -> None:
    folder = outcomes.parts.folder
    folder.mkdir()
    for name in (".old.draft", ".young.draft"):
        (folder / name).write_text("")
    aged(folder / ".old.draft", DEAD_DRAFT_SECONDS)
    compact(outcomes)
    assert [path.name for path in folder.glob(".*")] == [".young.draft"]


def test_compact_keeps_journals_if_it_cannot_write(outcomes: FolderStore) -> None:
    before = left(outcomes)
    (outcomes.path / "parts").write_text("in the way")
    with pytest.raises(NotWritten, match="The journals are kept"):
        compact(outcomes)
    assert left(outcomes) == before


def test_compact_needs_a_store(tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="There is no store"):
        compact(FolderStore(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_reader_sees_everything_during_compaction(
    store: FolderStore, keep: Keep, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_CHARACTERS", 5000)
    kept = [keep(make_job()).stem for _ in range(60)]
    compactor = threading.Thread(target=compact, args=[FolderStore(store.path)])
    compactor.start()
    readings = 0
    while compactor.is_alive() or not readings:
        assert [attempt.id for attempt in store.attempts()] == kept and store.problems == []
        readings += 1
    compactor.join()
    assert left(store) == [] and [attempt.id for attempt in store.attempts()] == kept


def test_compact_moves_the_others_beside_a_journal_that_no_part_holds(
    store: FolderStore, keep: Keep, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = [keep(make_job(process=number)) for number in range(5)]
    write = parts._write_parquet

    def refuse_one(path: Path, batch: Any) -> None:
        if any(journal.path == journals[3] for journal in batch):
            raise parts.DamagedPart("no part can hold it.")
        write(path, batch)

    monkeypatch.setattr(parts, "_write_parquet", refuse_one)
    done = compact(store)
    assert (done.moved, done.left, left(store)) == (4, {"not_movable": 1}, [journals[3]])
    assert done.problems == [f"{journals[3]}: not moved, it stays a journal: no part can hold it."]
    assert len(store.attempts()) == 5
