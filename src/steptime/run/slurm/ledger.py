"""Match Slurm's tasks with the folder: which starts ended without a result, and why.

Writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.record import Failure
from steptime.run.slurm.client import Slurm, Task, is_over
from steptime.run.slurm.folder import TERMINATED, CampaignFolder, Key, slot_of
from steptime.store import reader
from steptime.store.files import read_text

CAUSES = {
    "BOOT_FAIL": Cause.NODE_FAILED,
    "CANCELLED": Cause.CANCELLED,
    "DEADLINE": Cause.TIMED_OUT,
    "NODE_FAIL": Cause.NODE_FAILED,
    "OUT_OF_MEMORY": Cause.OUT_OF_MEMORY,
    "PREEMPTED": Cause.PREEMPTED,
    "REQUEUED": Cause.REQUEUED,
    "REVOKED": Cause.CANCELLED,
    "TIMEOUT": Cause.TIMED_OUT,
}
SENTENCES = {
    Cause.CANCELLED: "was cancelled",
    Cause.TIMED_OUT: "ran into its time limit",
    Cause.NODE_FAILED: "lost its node",
    Cause.OUT_OF_MEMORY: "used more memory than it asked for",
    Cause.PREEMPTED: "was preempted by another job",
    Cause.REQUEUED: "was put back into the queue",
}
# Without control groups, a job that grows too large is killed like any other, and only its log
# says why.
OVER_MEMORY = re.compile(r"exceeded (job )?memory limit|oom[-_]kill", re.IGNORECASE)


@dataclass(frozen=True)
class Lost:
    """A start that is over and left no result."""

    key: Key
    job: Job
    failure: Failure
    has_begun: bool


class Ledger:
    """Asks Slurm first and reads the folder afterwards.

    So a task that ends in between only looks as if it still ran."""

    def __init__(self, folder: CampaignFolder, slurm: Slurm) -> None:
        self.folder = folder
        self.slurm = slurm
        self.arrays = folder.array_folders()
        array_by_name = {folder.name(array): array for array in self.arrays}
        self.tasks: dict[Path, dict[int, Task]] = {array: {} for array in self.arrays}
        for task in slurm.tasks(list(array_by_name)):
            self.tasks[array_by_name[task.name]][task.index] = task
        self.outcomes = folder.outcomes()
        self.begun = set(folder.open_keys())

    @cached_property
    def jobs(self) -> dict[tuple[Path, int], list[Job]]:
        """The jobs of each task, by its array and index."""
        jobs = {}
        for array in self.arrays:
            for index, task_jobs in enumerate(self.folder.read_tasks(array)):
                jobs[array, index] = task_jobs
        return jobs

    @cached_property
    def history(self) -> dict[str, list[str]] | None:
        # sacct expects local time.
        since = datetime.fromisoformat(self.folder.facts()["started"]).astimezone()
        names = [self.folder.name(array) for array in self.arrays]
        return self.slurm.history(names, f"{since:%Y-%m-%dT%H:%M:%S}")

    def is_over(self, key: Key) -> bool:
        """Whether Slurm is done with this start. A ghost of it may live on a lost node."""
        task = self._by_id.get(key.task)
        return task is None or is_over(task.state) or key.restart < task.restarts

    @cached_property
    def _by_id(self) -> dict[str, Task]:
        return {task.id: task for tasks in self.tasks.values() for task in tasks.values()}

    def live(self) -> dict[str, Task]:
        """Slots that wait or run in Slurm, with their tasks."""
        live: dict[str, Task] = {}
        for (array, index), jobs in self.jobs.items():
            task = self.tasks[array].get(index)
            if task and not is_over(task.state):
                live |= {slot_of(job): task for job in jobs}
        return live

    def lost_starts(self) -> Iterator[Lost]:
        for (array, index), jobs in self.jobs.items():
            task = self.tasks[array].get(index)
            number = task.array if task else _array_number(array)
            if not number:
                # It was never submitted.
                continue
            for job in jobs:
                for key in self._lost_keys(job, f"{number}_{index}", task):
                    has_begun = key in self.begun
                    failure = self._failure(key, array, task, has_begun=has_begun)
                    yield Lost(key, job, failure, has_begun)

    def _lost_keys(self, job: Job, task_id: str, task: Task | None) -> list[Key]:
        slot = slot_of(job)
        starts = {
            key for key in self.begun | self.outcomes if key.slot == slot and key.task == task_id
        }
        last_restart = task.restarts if task else 0
        task_is_over = task is None or is_over(task.state)
        last_is_known = any(key.restart >= last_restart for key in starts)
        if task_is_over and not last_is_known and not self.folder.has_result(slot):
            # It ended before it could begin a journal.
            starts.add(Key(slot, task_id, last_restart))
        return [key for key in sorted(starts - self.outcomes) if self.is_over(key)]

    def _failure(self, key: Key, array: Path, task: Task | None, *, has_begun: bool) -> Failure:
        state = self._state(key, task)
        output = reader.last_output(array / "log" / f"{key.task}.log")
        cause = CAUSES.get(state, Cause.CRASHED)
        if cause == Cause.CRASHED and OVER_MEMORY.search(output):
            cause = Cause.OUT_OF_MEMORY
        sentence = SENTENCES.get(cause)
        if sentence is None:
            sentence = f"ended without a result ({_describe_end(state, task)})"
        if not has_begun:
            sentence += " before it began"
        elif task and task.node and key.restart == task.restarts:
            sentence += f" on {task.node}"
        reason = f"Slurm's task {key.task}, start {key.restart + 1}, {sentence}."
        return Failure(cause=cause, reason=reason, output=output)

    def _state(self, key: Key, task: Task | None) -> str:
        """How this start ended: by squeue, by sacct, or by what its driver noted."""
        if task is not None and key.restart == task.restarts and is_over(task.state):
            return task.state
        states = (self.history or {}).get(key.task, [])
        if key.restart < len(states) and states[key.restart] in CAUSES:
            return states[key.restart]
        # Any process of this start may have left the note: those after it never began.
        pattern = f"*.{key.task}.{key.restart}{TERMINATED}"
        note = next(self.folder.running_folder.glob(pattern), None)
        if note is None:
            return "NODE_FAIL" if task is not None else ""
        state = read_text(note)
        if is_over(state) or state in CAUSES:
            return state
        return "REQUEUED" if task is not None else ""


def _describe_end(state: str, task: Task | None) -> str:
    if not state:
        return "Slurm no longer knows it and keeps no accounting records"
    return f"{state}, {task.exit}" if task and task.exit else state


def _array_number(array: Path) -> str:
    """Slurm's number of the array.

    Empty if `submit` was killed before it noted the number, and no task has begun."""
    link = array / "job"
    return link.readlink().name if link.is_symlink() else ""
