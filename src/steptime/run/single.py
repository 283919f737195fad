"""Run one worker for a task that does not measure: train, profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.run import local
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7


def train(
    case: Case, options: dict[str, Any], store: FolderStore, on_line: Callable[[str], None]
) -> Attempt:
    """`options`: `epochs`, and `save`, the file for the weights. `on_line` gets the progress."""
    return local.LocalExecutor().run(_job("train", case, options), store, on_line)


def profile(case: Case, store: FolderStore) -> Attempt:
    """Profile a step. The trace goes to the store's blobs."""
    options = {"store": str(store.path.absolute())}
    return local.LocalExecutor().run(_job("profile", case, options), store)


def _job(task: str, case: Case, options: dict[str, Any]) -> Job:
    return Job(
        id=uuid7(),
        session=uuid7(),
        plan=task,
        process=0,
        case=case,
        protocol=Protocol(),
        task=task,
        options=options,
    )
