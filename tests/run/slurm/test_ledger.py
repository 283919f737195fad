"""What is made of Slurm's words, also of those that a real one says only after hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run.slurm.client import Slurm, Task
from steptime.run.slurm.folder import CampaignFolder, Key, slot_of
from steptime.run.slurm.ledger import Ledger
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7

SESSION = uuid7()
JOB = Job(
    id=uuid7(),
    session=SESSION,
    plan="p",
    process=0,
    case=Case(workload="mnist-mlp"),
    protocol=Protocol(),
)
SLOT = slot_of(JOB)


class Told(Slurm):
    """A Slurm that says what it was told."""

    def __init__(self, *tasks: Task, accounts: dict[str, list[str]] | None = None) -> None:
        super().__init__()
        self.told, self.accounts = list(tasks), accounts

    def tasks(self, names: Sequence[str]) -> list[Task]:
        return self.told

    def history(self, names: Sequence[str], since: str) -> dict[str, list[str]] | None:
        return self.accounts


@pytest.fixture
def folder(tmp_path: Path) -> CampaignFolder:
    """One array of one task, whose process has begun."""
    made = CampaignFolder(FolderStore(tmp_path / "results"), SESSION)
    made.make({"plan": "p", "name": "n", "title": "", "started": "2026-01-01T00:00:00+00:00"})
    made.set_number(made.add_array([[JOB]], ""), "7")
    with Journal(made.journal(Key(SLOT, "7_0", 0))) as journal:
        journal.begin(JOB)
    return made


def task(folder: CampaignFolder, state: str, restarts: int = 0) -> Task:
    (array,) = folder.array_folders()
    return Task(
        array="7", index=0, name=folder.name(array), state=state, restarts=restarts, node="k80-0"
    )


def causes(folder: CampaignFolder, slurm: Slurm) -> dict[int, str]:
    return {lost.key.restart: lost.failure.cause for lost in Ledger(folder, slurm).lost_starts()}


def test_lost_starts_omit_what_runs(folder: CampaignFolder) -> None:
    for state in ("RUNNING", "COMPLETING", "PENDING"):
        assert causes(folder, Told(task(folder, state))) == {}


@pytest.mark.parametrize(
    "state, cause",
    {"TIMEOUT": "timed_out", "OUT_OF_MEMORY": "out_of_memory", "FAILED": "crashed"}.items(),
)
def test_lost_starts_have_the_cause_of_their_task(
    folder: CampaignFolder, state: str, cause: str
) -> None:
    assert causes(folder, Told(task(folder, state))) == {0: cause}


def test_lost_starts_before_a_restart_lost_their_node_or_were_requeued(
    folder: CampaignFolder,
) -> None:
    again = Told(task(folder, "RUNNING", restarts=1))
    assert causes(folder, again) == {0: "node_failed"}
    (folder.running_folder / f"{SLOT}.7_0.0.term").write_text("PENDING")
    assert causes(folder, again) == {0: "requeued"}


def test_lost_starts_of_one_task_share_the_note_of_its_driver(
    folder: CampaignFolder,
) -> None:
    behind = replace(JOB, case=replace(JOB.case, batch_size=7))
    folder.set_number(folder.add_array([[JOB, behind]], ""), "8")
    (folder.running_folder / f"{SLOT}.8_0.0.term").write_text("CANCELLED")
    (folder.running_folder / f"{SLOT}.7_0.0.term").write_text(
        "RUNNING"
    )  # Slurm did not say how it ends
    lost = {one.key: one.failure.cause for one in Ledger(folder, Told()).lost_starts()}
    assert lost[Key(slot_of(behind), "8_0", 0)] == lost[Key(SLOT, "8_0", 0)] == "cancelled"
    assert lost[Key(SLOT, "7_0", 0)] == "crashed"


def test_lost_starts_prefer_the_accounting_records(folder: CampaignFolder) -> None:
    again = Told(
        task(folder, "CANCELLED", restarts=1), accounts={"7_0": ["PREEMPTED", "CANCELLED"]}
    )
    assert causes(folder, again) == {0: "preempted", 1: "cancelled"}


def test_lost_starts_of_a_forgotten_task_use_the_note_of_its_driver(folder: CampaignFolder) -> None:
    assert causes(folder, Told()) == {0: "crashed"}
    (folder.running_folder / f"{SLOT}.7_0.0.term").write_text("TIMEOUT")
    assert causes(folder, Told()) == {0: "timed_out"}


def test_lost_starts_ignore_an_array_that_was_never_submitted(folder: CampaignFolder) -> None:
    (array,) = folder.array_folders()
    (array / "job").unlink()
    assert causes(folder, Told()) == {} and Ledger(folder, Told()).live() == {}


def test_lost_starts_omit_known_outcomes(folder: CampaignFolder) -> None:
    (folder.path / "outcomes" / f"{SLOT}.7_0.0").symlink_to("somebody")
    assert causes(folder, Told(task(folder, "TIMEOUT"))) == {}
