from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Failure
from steptime.run.slurm.folder import CampaignFolder, Key, find, slot_of
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7

CASE = Case(workload="mnist-mlp")
Measure = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> CampaignFolder:
    made = CampaignFolder(FolderStore(tmp_path / "results"), uuid7())
    made.make({"plan": "p", "name": "n", "title": "", "started": "2026-01-01T00:00:00+00:00"})
    return made


@pytest.fixture
def write(folder: CampaignFolder, attempt_of: Callable[..., Attempt]) -> Measure:
    """The journal of one start, as a worker leaves it on its node."""

    def run(task: str = "7_0", restart: int = 0, *, failed: bool = False, name: str = "") -> Path:
        job = Job(
            id=name or uuid7(),
            session=folder.session,
            plan="p",
            process=0,
            case=CASE,
            protocol=Protocol(),
        )
        path = folder.journal(Key(slot_of(job), task, restart))
        with Journal(path) as journal:
            journal.begin(job)
            if failed:
                journal.write_failure(Failure(cause=Cause.CRASHED, reason="It did."))
            else:
                measurement = attempt_of([1000] * 20).measurement
                assert measurement
                journal.write_measurement(measurement)
        return path

    return run


def test_deliver_sets_a_second_result_aside(folder: CampaignFolder, write: Measure) -> None:
    first, late = folder.deliver(write()), folder.deliver(write(restart=1))
    assert first is not None and late is None
    assert [attempt.id for attempt in folder.store.attempts()] == [first.id] and len(
        folder.ghosts()
    ) == 1


def test_deliver_accepts_a_result_after_failures(folder: CampaignFolder, write: Measure) -> None:
    for restart in range(2):
        assert folder.deliver(write(restart=restart, failed=True)) is not None
    assert folder.deliver(write(restart=2)) is not None
    assert [attempt.failure is None for attempt in folder.store.attempts()] == [False, False, True]


def test_deliver_keeps_one_outcome_per_start(folder: CampaignFolder, write: Measure) -> None:
    lost = write(failed=True)
    assert folder.deliver(lost.rename(lost.with_suffix(".lost.jsonl"))) is not None
    assert folder.deliver(write()) is None and len(folder.ghosts()) == 1


def test_deliver_never_overwrites(folder: CampaignFolder, write: Measure) -> None:
    first = folder.deliver(write())
    assert first is not None
    assert folder.deliver(write(failed=True, name=first.id)) is None
    (kept,) = folder.store.attempts()
    assert kept == first


@pytest.mark.parametrize("step", ["symlink", "link", "unlink"])
def test_deliver_finishes_an_interrupted_delivery(
    folder: CampaignFolder, write: Measure, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write()

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"os.{step}", die)
        folder.deliver(path)
    assert folder.deliver(path) is not None
    assert len(folder.store.attempts()) == 1 and not path.exists() and folder.ghosts() == []


def test_deliver_works_without_hard_links(
    folder: CampaignFolder, write: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    assert folder.deliver(write()) is not None and len(folder.store.attempts()) == 1


def test_deliver_leaves_a_journal_without_end(folder: CampaignFolder, write: Measure) -> None:
    path = write()
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert folder.deliver(path) is None and path.exists()


def test_find_takes_an_id_or_the_newest(folder: CampaignFolder) -> None:
    assert (
        find(folder.store).session
        == find(folder.store, folder.session[-6:]).session
        == folder.session
    )
    with pytest.raises(SteptimeError, match="'zzz' names no campaign"):
        find(folder.store, "zzz")
    with pytest.raises(SteptimeError, match="There is no campaign"):
        find(FolderStore(folder.path / "elsewhere"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"plan": 1}', "[" * 100_000])
def test_facts_of_a_damaged_campaign_are_an_error(text: str, folder: CampaignFolder) -> None:
    (folder.path / "campaign.json").write_text(text)
    with pytest.raises(SteptimeError, match="is damaged"):
        folder.facts()


@pytest.mark.parametrize("started", ["yesterday", "0001-01-01T00:00:00"])
def test_facts_without_a_moment_are_an_error(started: str, folder: CampaignFolder) -> None:
    facts = {"plan": "p", "name": "n", "title": "", "started": started}
    (folder.path / "campaign.json").write_text(json.dumps(facts))
    with pytest.raises(SteptimeError, match="is damaged"):
        folder.facts()


@pytest.mark.parametrize("text", ["", "{}x", "[1]", '[[{"id": 1}]]', "[" * 100_000])
def test_tasks_of_a_damaged_index_are_an_error(text: str, folder: CampaignFolder) -> None:
    array = folder.add_array([], "")
    (array / "index.json").write_text(text)
    with pytest.raises(SteptimeError, match="is damaged"):
        folder.read_tasks(array)
