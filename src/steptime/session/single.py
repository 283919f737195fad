"""One case handed to one worker for a task that is not measuring. It may tell how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steptime import shelf
from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7


def train(case: Case, options: dict[str, Any], store: FolderStore, hear: Callable[[str], None]) -> Attempt:
    """`options`: `epochs`, and `save`, the file for the weights."""
    job = Job(
        id=uuid7(),
        session=uuid7(),
        plan="train",
        process=0,
        case=case,
        protocol=Protocol(),
        task="train",
        options=options,
    )
    attempt: Attempt = shelf.load("executors", "local").Executor().listen(job, store, hear)
    return attempt
