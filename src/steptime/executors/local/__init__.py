"""Runs jobs as fresh processes of this machine, one at a time."""

from __future__ import annotations

import sys
from dataclasses import replace

from steptime.core.job import Job
from steptime.core.record import Attempt
from steptime.executors.local.process import WorkerProcess
from steptime.store.folder import FolderStore


class Executor:
    def __init__(self, python: str = sys.executable) -> None:
        self.python = python

    def run(self, job: Job, store: FolderStore) -> Attempt:
        """Returns when the worker is gone and its journal is closed, whatever happened to it."""
        worker = WorkerProcess(self.python, job, store)
        with worker.supervised():
            worker.wait()
        return worker.attempt()

    def resident(self, job: Job, store: FolderStore) -> Resident:
        """Returns when the worker is warm and waits for its first turn, or is gone."""
        worker = WorkerProcess(self.python, replace(job, turns=True), store)
        resident = Resident(worker)
        with worker.supervised():
            resident.alive = worker.heard("ready")
        return resident


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
        """Nobody wants the rest any more; what it was before that, it stays."""
        self.worker.end("cancelled", reason)
        return self.worker.attempt()
