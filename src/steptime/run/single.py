"""One case handed to one worker for a task that is not measuring. It may tell how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steptime.core.case import Case
from steptime.core.executor import Executor
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.run import local
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7


def train(
    case: Case, options: dict[str, Any], store: FolderStore, hear: Callable[[str], None]
) -> Attempt:
    """`options`: `epochs`, and `save`, the file for the weights."""
    attempt = _executor().run(_job("train", case, options), store, hear)
    return attempt


def profile(case: Case, store: FolderStore) -> Attempt:
    """What is inside a step. The trace goes to the store's blobs."""
    attempt = _executor().run(_job("profile", case, {"store": str(store.path.absolute())}), store)
    return attempt


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


def _executor() -> Executor:
    return local.LocalExecutor()
