"""The contract of an executor: a job becomes an attempt in the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factories import kept_blocks
from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run import local
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving", "no_orphans")]


@pytest.fixture
def executor() -> Any:
    return local.LocalExecutor()


@pytest.fixture
def job(short: Protocol) -> Job:
    case = Case(workload="mnist-mlp", framework="calm", batch_size=4)
    return Job(id=uuid7(), session="s", plan="p", process=3, case=case, protocol=short, pair="duel")


def test_run_returns_the_attempt_of_the_job(executor: Any, job: Job, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "results")
    attempt = executor.run(job, store)
    assert attempt.measurement is not None and attempt.environment
    assert (attempt.id, attempt.process, attempt.case, attempt.pair) == (
        job.id,
        3,
        job.case,
        "duel",
    )
    assert store.attempts() == [attempt]


def test_resident_measures_one_block_per_turn(executor: Any, job: Job, tmp_path: Path) -> None:
    resident = executor.resident(job, FolderStore(tmp_path / "results"))
    assert resident.alive and resident.turn() and resident.turn()
    measurement = resident.stop().measurement
    assert measurement is not None and len(kept_blocks(measurement)) == 2
