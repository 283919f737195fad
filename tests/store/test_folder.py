from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal

Keep = Callable[[Job], Path]
MakeJob = Callable[..., Job]


def test_records_do_not_make_the_folder(store: FolderStore) -> None:
    assert store.records() == [] and not store.path.exists()


def test_journal_path_has_the_day_of_the_id(store: FolderStore) -> None:
    path = store.journal("019a8c1e-5b7e-7c31-9a52-0d6f1c2b3a44")
    assert path == store.path / "journal/2025/11/16/019a8c1e-5b7e-7c31-9a52-0d6f1c2b3a44.jsonl"
    assert json.loads((store.path / "STORE.json").read_text())["format"] == 2


def test_records_group_attempts_by_session_and_case(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    other = Case(workload="mnist-mlp", batch_size=64)
    for settings in ({"process": 1}, {"case": other}, {"session": "s2"}, {"process": 0}):
        keep(make_job(**settings))
    records = store.records()
    assert [(r.session, r.case.batch_size, [a.process for a in r.attempts]) for r in records] == [
        ("s1", 32, [0, 1]),
        ("s1", 64, [0]),
        ("s2", 32, [0]),
    ]


def test_find_takes_either_end_of_an_id_or_session(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    job = make_job(session="0198-abcd")
    keep(job)
    keep(make_job(session="0198-ffff"))
    for word in (job.id, job.id[-12:], "0198-a", "abcd"):
        assert [record.session for record in store.find(word)] == ["0198-abcd"]
    assert len(store.find("0198")) == 2 and store.find("") == []


def test_attempts_skip_an_unreadable_journal(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    keep(make_job())
    bad = keep(make_job())
    bad.write_text("{}\n")
    assert len(store.attempts()) == 1
    assert len(store.problems) == 1 and str(bad) in store.problems[0] and bad.exists()


def test_attempts_leave_out_a_running_one(store: FolderStore, make_job: MakeJob) -> None:
    job = make_job()
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        assert store.attempts() == []
    assert [attempt.id for attempt in store.attempts()] == [job.id]


@pytest.mark.parametrize(
    "text, words", [('{"format": 3}', "newer steptime"), ("[", "Is this a steptime store")]
)
def test_folder_store_refuses_another_format(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "STORE.json").write_text(text)
    with pytest.raises(SteptimeError, match=words):
        FolderStore(tmp_path)


def test_journal_explains_a_folder_that_cannot_be_written(
    tmp_path: Path, make_job: MakeJob
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SteptimeError, match="--store"):
        FolderStore(tmp_path / "file" / "results").journal(make_job().id)


def test_hold_lets_one_process_in(store: FolderStore) -> None:
    words = "another process"
    with (
        store.hold("s1"),
        store.hold("s2"),
        pytest.raises(SteptimeError, match=words),
        store.hold("s1"),
    ):
        pytest.fail("held twice")
    with store.hold("s1"):
        pass


def leftovers(store: FolderStore, job: Job, printed: str = "") -> list[Path]:
    """As a kill -9 of the parent leaves them."""
    path = store.journal(job.id)
    orders, log = path.with_suffix(".case.json"), path.with_suffix(".log")
    orders.write_text(json.dumps(job.to_dict()))
    log.write_text(printed)
    return [file for file in (orders, log) if file.exists()]


def test_tidy_removes_what_a_killed_run_left(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    keep(done := make_job())
    left = [*leftovers(store, done, "a warning"), *leftovers(store, make_job())]
    store.tidy("p1")
    assert not any(file.exists() for file in left) and len(store.attempts()) == 1


def test_tidy_keeps_the_output_of_a_killed_worker(store: FolderStore, make_job: MakeJob) -> None:
    orders, log = leftovers(store, make_job(), "Segmentation fault")
    store.tidy("p1")
    assert (orders.exists(), log.exists()) == (False, True)


def test_tidy_leaves_other_plans_and_running_attempts(
    store: FolderStore, make_job: MakeJob
) -> None:
    other, running = make_job(plan="p2"), make_job()
    left = [*leftovers(store, other), *leftovers(store, running)]
    with Journal(store.journal(running.id)) as journal:
        journal.begin(running)
        store.tidy("p1")
    assert all(file.exists() for file in left)


@pytest.mark.parametrize("text", ["", "[]", "{}", "not JSON"])
def test_folder_store_explains_a_mark_without_format(tmp_path: Path, text: str) -> None:
    (tmp_path / "STORE.json").write_text(text)
    with pytest.raises(
        SteptimeError, match=r'does not name its format, as \{"format": 2\} does\. Is this'
    ):
        FolderStore(tmp_path)
