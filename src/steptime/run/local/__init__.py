"""Run jobs as fresh processes of this machine, one at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from steptime import workloads
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.container import Container
from steptime.core.errors import SteptimeError, UnreadableFile
from steptime.core.executor import JournalStore
from steptime.core.job import Job
from steptime.core.record import Attempt, Failure
from steptime.run.local.container import ContainerLaunch
from steptime.run.local.launch import NAME, InterpreterLaunch, Launch, machine_file
from steptime.run.local.process import WorkerProcess
from steptime.run.local.trust import trust
from steptime.store import journal, reader
from steptime.store.machines import limits_by_machine

__all__ = ["LocalExecutor", "LocalResident", "machine_file", "trust_machine_file"]


def trust_machine_file() -> None:
    """Trust the machine file in the working folder."""
    trust(Path(NAME))


class LocalExecutor:
    """An `Executor` (core/executor.py) whose workers are children of this process."""

    def __init__(self, python: str = sys.executable) -> None:
        self.python = python
        self.machine = machine_file()

    def run(
        self, job: Job, store: JournalStore, on_line: Callable[[str], None] | None = None
    ) -> Attempt:
        launch = self._launch(job)
        obstacle = self._obstacle(job, launch)
        if obstacle is not None:
            return _record_obstacle(job, obstacle, store)
        job = self._add_options(job, store)
        if on_line is not None:
            # A worker reports its progress only to a parent that talks with it.
            job = replace(job, turns=True)
        worker = WorkerProcess.start(launch, job, store)
        with worker.supervise():
            if on_line is not None:
                worker.forward_lines(on_line)
            worker.wait()
        return worker.attempt()

    def resident(self, job: Job, store: JournalStore) -> LocalResident:
        launch = self._launch(job)
        obstacle = self._obstacle(job, launch)
        if obstacle is not None:
            raise SteptimeError(obstacle.reason)
        job = replace(self._add_options(job, store), turns=True)
        resident = LocalResident(WorkerProcess.start(launch, job, store))
        resident.await_warm_up()
        return resident

    def _launch(self, job: Job) -> Launch:
        way = self.machine.way(job.case)
        if isinstance(way, Container):
            return ContainerLaunch(way, self.machine.path)
        if way:
            return InterpreterLaunch(way, self.machine.path)
        return InterpreterLaunch((self.python,))

    def _obstacle(self, job: Job, launch: Launch) -> Failure | None:
        """Why the job cannot run here: a missing interpreter or tier is no crash."""
        absence = launch.absence
        if absence:
            return Failure(cause=Cause.NOT_INSTALLED, reason=absence)
        lacking = self.machine.lacks(job.case)
        if lacking:
            return Failure(cause=Cause.UNSUPPORTED, reason=lacking)
        # Found out here, because a worker that loads such a file may hang until its time limit.
        return _unreadable_file(job.case)

    def _add_options(self, job: Job, store: JournalStore) -> Job:
        """Add what only this process knows: the folder of the tier, and the measured peaks."""
        options = dict(job.options)
        tier = self.machine.tiers.get(job.case.staging)
        if tier:
            options["tier"] = tier
        if job.task == "measure":
            # Of every machine in the store: which one the worker runs on, it finds out itself.
            options["peaks"] = limits_by_machine(store.path, job.case.device)
        return replace(job, options=options)


def _unreadable_file(case: Case) -> Failure | None:
    if not workloads.is_user_file(case.workload):
        return None
    try:
        workloads.describe(case)
    except UnreadableFile as problem:
        # What the file printed follows the first line.
        reason, _, printed = str(problem).partition("\n")
        return Failure(cause=Cause.UNREADABLE, reason=reason, output=printed)
    return None


def _record_obstacle(job: Job, failure: Failure, store: JournalStore) -> Attempt:
    path = store.journal(job.id)
    journal.close_failed(path, job, failure)
    attempt = reader.read(path)
    assert attempt is not None
    return attempt


class LocalResident:
    """A `Resident` (core/executor.py): the worker's end of the conversation is tasks/measure."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self.alive = False

    def await_warm_up(self) -> None:
        with self.worker.supervise():
            self.alive = self.worker.receive("ready")

    def turn(self) -> bool:
        with self.worker.supervise():
            if self.alive:
                self.alive = self.worker.send("turn") and self.worker.receive("done")
        return self.alive

    def stop(self) -> Attempt:
        with self.worker.supervise():
            self.worker.send("stop")
            self.worker.wait()
        return self.worker.attempt()

    def cancel(self, reason: str) -> Attempt:
        self.worker.end(Cause.CANCELLED, reason)
        return self.worker.attempt()
