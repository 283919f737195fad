"""SHELF: one file or folder per thing that a worker can be asked to do with a case: measure, certify, train, …"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import IO

from steptime.core.job import Job
from steptime.ranks.rendezvous import Rendezvous
from steptime.store.journal import Journal


@dataclass(frozen=True)
class TaskContext:
    """What a task gets: the case's framework is loaded and can do the case; the journal's context is written."""

    job: Job
    journal: Journal
    framework: ModuleType
    import_seconds: float
    answers: IO[str] | None = None  # standard output, where the parent hands out turns
    rendezvous: Rendezvous | None = (
        None  # of several ranks; of these the first alone writes into the journal
    )


# A task's file has one function, `perform(context: TaskContext) -> None`. It ends the journal: with `measured` or `found`.
