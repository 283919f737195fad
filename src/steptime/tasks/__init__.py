"""PLUGINS: one file or folder for each task of a worker: measure, certify, train, profile.

A task's module has one function, `perform(context: TaskContext) -> None`. It ends the journal
with `write_measurement` or `write_findings`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO

from steptime.core.job import Job
from steptime.core.program import Framework
from steptime.core.stopwatch import Stopwatch
from steptime.ranks.rendezvous import Rendezvous
from steptime.store.journal import Sink


@dataclass(frozen=True)
class TaskContext:
    """What a task gets.

    The framework is loaded and supports the case. The journal's context is already written."""

    job: Job
    journal: Sink
    framework: Framework
    # Standard output, if the parent controls the turns of this worker.
    answers: IO[str] | None = None
    # None for a single rank. Of several ranks, only rank 0 writes into the journal.
    rendezvous: Rendezvous | None = None
    # Its first laps are those of the process before the task.
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def rank(self) -> int:
        return self.rendezvous.ranks.rank if self.rendezvous is not None else 0
