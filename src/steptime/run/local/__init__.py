"""Runs jobs as fresh processes of this machine, one at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from steptime.core.cause import Cause
from steptime.core.container import Container
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.record import Attempt, Failure
from steptime.run.local.container import ContainerLaunch
from steptime.run.local.launch import Launch, machine_file
from steptime.run.local.process import WorkerProcess
from steptime.store import journal, reader
from steptime.store.folder import FolderStore

__all__ = ["Executor", "Resident", "machine_file"]


class Executor:
    def __init__(self, python: str = sys.executable) -> None:
        self.python, self.machine = python, machine_file()

    def run(self, job: Job, store: FolderStore) -> Attempt:
        """Returns when the worker is gone and its journal is closed, whatever happened to it."""
        launch = self._launch(job)
        if hindrance := self._hindrance(job, launch):
            return _not_run(job, hindrance, store)
        worker = WorkerProcess(launch, self._placed(job), store)
        with worker.supervised():
            worker.wait()
        return worker.attempt()

    def listen(self, job: Job, store: FolderStore, hear: Callable[[str], None]) -> Attempt:
        """Like `run`, for a task that tells how far it is: every line that it says is heard."""
        launch = self._launch(job)
        if hindrance := self._hindrance(job, launch):
            return _not_run(job, hindrance, store)
        worker = WorkerProcess(launch, replace(self._placed(job), turns=True), store)
        with worker.supervised():
            for line in worker.lines():
                hear(line)
            worker.wait()
        return worker.attempt()

    def resident(self, job: Job, store: FolderStore) -> Resident:
        """Returns when the worker is warm and waits for its first turn, or is gone."""
        launch = self._launch(job)
        if hindrance := self._hindrance(job, launch):
            raise SteptimeError(hindrance.reason)
        worker = WorkerProcess(launch, replace(self._placed(job), turns=True), store)
        resident = Resident(worker)
        with worker.supervised():
            resident.alive = worker.heard("ready")
        return resident

    def _placed(self, job: Job) -> Job:
        """With the folder of its tier: where that is, only the machine file knows."""
        tier = self.machine.tiers.get(job.case.staging)
        return replace(job, options={**job.options, "tier": tier}) if tier else job

    def _hindrance(self, job: Job, launch: Launch | ContainerLaunch) -> Failure | None:
        """An interpreter or a tier that is absent makes a case that cannot run here, not a crash."""
        if launch.absence:
            return Failure(cause=Cause.NOT_INSTALLED, reason=launch.absence)
        lacking = self.machine.lacks(job.case)
        return Failure(cause=Cause.UNSUPPORTED, reason=lacking) if lacking else None

    def _launch(self, job: Job) -> Launch | ContainerLaunch:
        way = self.machine.way(job.case)
        if isinstance(way, Container):
            return ContainerLaunch(way, self.machine.path)
        return Launch(way, self.machine.path) if way else Launch((self.python,))


def _not_run(job: Job, failure: Failure, store: FolderStore) -> Attempt:
    path = store.journal(job.id)
    journal.close_failed(path, job, failure)
    attempt = reader.read(path)
    assert attempt is not None
    return attempt


class Resident:
    """A warm worker that measures one block whenever it is its turn."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self.alive = False

    def turn(self) -> bool:
        """False: the worker is gone, `stop` tells why."""
        with self.worker.supervised():
            self.alive = self.alive and self.worker.tell("turn") and self.worker.heard("done")
        return self.alive

    def stop(self) -> Attempt:
        with self.worker.supervised():
            self.worker.tell("stop")
            self.worker.wait()
        return self.worker.attempt()

    def cancel(self, reason: str) -> Attempt:
        """NullWatch wants the rest any more; what it was before that, it stays."""
        self.worker.end(Cause.CANCELLED, reason)
        return self.worker.attempt()
