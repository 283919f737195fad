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
from steptime.store.imports import Imports, foreign_runs
from steptime.store.journal import Journal
from steptime.store.merge import merge

Keep = Callable[[Job], Path]
MakeJob = Callable[..., Job]


@pytest.fixture
def target(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "target")


def test_merge_copies_everything_and_twice_changes_nothing(
    target: FolderStore, outcomes: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    compact(outcomes)
    keep(make_job(process=1))
    data = b"images/sec: 7"
    name = sha256(data).hexdigest()
    with Imports(outcomes.path) as imports:
        imports.keep(
            name, data, [ForeignRun(source="dlbs", original=name, file="a.log", location="line 1")]
        )
    assert merge(target, outcomes).copied == {"journals": 1, "parts": 1, "blobs": 1, "imports": 1}
    assert target.attempts() == outcomes.attempts() and len(list(foreign_runs(target.path))) == 1
    again = merge(target, outcomes)
    assert again.copied == {} and again.present.total() == 4 and check(target).wrong == []


def test_merge_of_differently_compacted_stores_has_no_duplicates(
    target: FolderStore, store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    for _ in range(3):
        keep(make_job())
    merge(target, store)
    compact(target)
    compact(store)
    assert merge(target, store).copied == {}
    assert len(target.attempts()) == 3 and check(target).duplicates == 0


def test_merge_skips_a_journal_that_a_part_holds(
    target: FolderStore, store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    keep(make_job())
    merge(target, store)
    compact(target)
    assert (
        merge(target, store).present == {"journals": 1} and list(target.path.rglob("*.jsonl")) == []
    )


def test_merge_continues_a_journal_copied_while_it_ran(
    target: FolderStore, store: FolderStore, make_job: MakeJob
) -> None:
    job = make_job()
    path, copy = store.journal(job.id), target.journal(job.id)
    with Journal(path) as journal:
        journal.begin(job)
        copy.write_bytes(path.read_bytes())
        assert merge(target, store).left == {"running": 1}
        journal.write_findings({"x": 1})
    assert merge(target, store).copied == {"journals": 1} and copy.read_bytes() == path.read_bytes()
    assert merge(store, target).copied == {}


def test_merge_copies_the_output_of_a_killed_worker(
    target: FolderStore, store: FolderStore, make_job: MakeJob
) -> None:
    job = make_job()
    path = store.journal(job.id)
    with Journal(path) as journal:
        journal.begin(job)
    path.with_suffix(".log").write_text("Segmentation fault\n")
    merge(target, store)
    assert target.attempts() == store.attempts() and len(target.attempts()) == 1


def test_merge_reports_another_text_of_an_id(
    target: FolderStore, store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    path = keep(make_job())
    copy = target.journal(path.stem)
    copy.write_text(path.read_text().replace("mnist-mlp", "lenet5"))
    before = copy.read_text()
    assert "another text" in merge(target, store).problems[0] and copy.read_text() == before


def test_merge_reports_damage_and_does_not_copy_it(
    target: FolderStore, outcomes: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    compact(outcomes)
    outcomes.parts.paths()[0].write_bytes(b"")
    keep(make_job()).write_text("{}\n")
    name = Blobs(outcomes.path).put(b"right")
    Blobs(outcomes.path).path(name).write_bytes(b"wrong")
    done = merge(target, outcomes)
    assert len(done.problems) == 3 and done.copied == {} and check(target).wrong == []


def test_merge_repairs_a_damaged_part(target: FolderStore, outcomes: FolderStore) -> None:
    compact(outcomes)
    merge(target, outcomes)
    target.parts.paths()[0].write_bytes(b"")
    assert merge(target, outcomes).copied == {"parts": 1} and check(target).wrong == []


def test_merge_refuses_the_store_itself(outcomes: FolderStore) -> None:
    with pytest.raises(SteptimeError, match="the store itself"):
        merge(outcomes, FolderStore(outcomes.path))


def test_merge_needs_another_store(target: FolderStore, tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="is no store"):
        merge(target, FolderStore(tmp_path))
    assert not target.path.exists()


def test_merge_leaves_and_names_a_record_that_is_set_aside(
    target: FolderStore, store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    keep(make_job())
    odd = keep(make_job(process=1))
    edit(odd, '"session":"s1"', '"session":[]')
    report = merge(target, store)
    assert (report.copied, report.left) == ({"journals": 1}, {"damaged": 1})
    assert report.problems[0].startswith(f"{odd}: set aside (line 1: begin.session must be text")


def test_merge_names_a_record_that_is_set_aside_in_a_part(
    target: FolderStore,
    store: FolderStore,
    keep: Keep,
    make_job: MakeJob,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep(make_job())
    odd = keep(make_job(process=1))
    edit(odd, '"plan":"p1"', '"plan":7')
    with monkeypatch.context() as older:
        # As a version without a schema wrote it.
        older.setattr("steptime.store.reader.line_problem", lambda line: "")
        compact(store)
    report = merge(target, store)
    assert report.copied == {"parts": 1}
    (problem,) = report.problems
    assert f"{odd.stem}: set aside (line 1: begin.plan must be text, found 7)" in problem
    assert len(target.attempts()) == 1
