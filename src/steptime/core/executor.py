"""What runs a job: the interface between a session and the processes that it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from steptime.core.job import Job
from steptime.core.record import Attempt


class JournalStore(Protocol):
    """The part of a store that an executor needs: where a job's journal goes."""

    @property
    def path(self) -> Path: ...

    def journal(self, identifier: str) -> Path:
        """The file of the attempt with this id. Its folder exists."""


class Resident(Protocol):
    """A warm worker that measures one block in each turn and waits in between."""

    @property
    def alive(self) -> bool: ...

    def turn(self) -> bool:
        """Measure one block. False if the worker is gone; `stop` then gives the reason."""

    def stop(self) -> Attempt:
        """End the worker in order and return what it measured, or why it failed."""

    def cancel(self, reason: str) -> Attempt:
        """End the worker at once. A result or failure that it has already stays as it is."""


class Executor(Protocol):
    """Runs jobs and waits for them.

    `run.local` implements it with processes of this machine. `run.slurm` does not: to submit a
    campaign returns long before a job runs. Its driver, on the node, hands each job to a local
    executor, with a `JournalStore` that keeps the journal in the campaign's folder."""

    def run(
        self, job: Job, store: JournalStore, on_line: Callable[[str], None] | None = None
    ) -> Attempt:
        """Return when the worker has ended and its journal is closed, whatever happened to it.

        `on_line` gets every line that a task prints as its progress, while it runs."""

    def resident(self, job: Job, store: JournalStore) -> Resident:
        """Return when the worker is warm and waits for its first turn, or when it is gone."""
