"""What Slurm says beside what the folder holds: which starts are over without a result, and why. Writes nothing."""

from __future__ import annotations

import json
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
WORDS = {
    Cause.CANCELLED: "was cancelled",
    Cause.TIMED_OUT: "ran into its time limit",
    Cause.NODE_FAILED: "lost its node",
    Cause.OUT_OF_MEMORY: "used more memory than it asked for",
    Cause.PREEMPTED: "had to make room for another",
    Cause.REQUEUED: "was put back into the queue",
}
# Without control groups a job that grows too large is killed like any other, and only its log says why.
OVER_MEMORY = re.compile(r"exceeded (job )?memory limit|oom[-_]kill", re.IGNORECASE)


@dataclass(frozen=True)
class Lost:
    """A start that is over and left no result."""

    key: Key
    job: Job
    failure: Failure
    begun: bool


class Ledger:
    """Slurm is asked first and the folder read afterwards: what ended in between only looks as if it still ran."""

    def __init__(self, folder: CampaignFolder, slurm: Slurm) -> None:
        self.folder, self.slurm = folder, slurm
        self.arrays = folder.array_folders()
        names = {folder.name(array): array for array in self.arrays}
        found = slurm.tasks(list(names))
        self.tasks: dict[Path, dict[int, Task]] = {array: {} for array in self.arrays}
        for task in found:
            self.tasks[names[task.name]][task.index] = task
        self.outcomes = folder.outcomes()
        self.begun = set(folder.open_keys())

    @cached_property
    def jobs(self) -> dict[tuple[Path, int], list[Job]]:
        return {
            (array, index): [Job.from_dict(values) for values in task]
            for array in self.arrays
            for index, task in enumerate(json.loads((array / "index.json").read_text()))
        }

    @cached_property
    def history(self) -> dict[str, list[str]] | None:
        since = datetime.fromisoformat(
            self.folder.facts()["started"]
        ).astimezone()  # sacct thinks in local time
        return self.slurm.history(
            [self.folder.name(array) for array in self.arrays], f"{since:%Y-%m-%dT%H:%M:%S}"
        )

    def is_over(self, key: Key) -> bool:
        """Whether Slurm is done with this start; a ghost of it may live on a node that was lost."""
        task = self._by_id.get(key.task)
        return task is None or is_over(task.state) or key.restart < task.restarts

    @cached_property
    def _by_id(self) -> dict[str, Task]:
        return {task.id: task for tasks in self.tasks.values() for task in tasks.values()}

    def live(self) -> dict[str, Task]:
        """Slots that Slurm still has in hand, with their tasks."""
        found: dict[str, Task] = {}
        for (array, index), jobs in self.jobs.items():
            task = self.tasks[array].get(index)
            if task and not is_over(task.state):
                found |= {slot_of(job): task for job in jobs}
        return found

    def lost(self) -> Iterator[Lost]:
        for (array, index), jobs in self.jobs.items():
            task = self.tasks[array].get(index)
            number = task.array if task else _number(array)
            if not number:
                continue  # it never came to sbatch
            for job in jobs:
                yield from self._lost(job, array, f"{number}_{index}", task)

    def _lost(self, job: Job, array: Path, name: str, task: Task | None) -> Iterator[Lost]:
        slot = slot_of(job)
        over = task is None or is_over(task.state)
        known = {key for key in self.begun | self.outcomes if (key.slot, key.task) == (slot, name)}
        last = task.restarts if task else 0
        if (
            over
            and not self.folder.has_result(slot)
            and not any(key.restart >= last for key in known)
        ):
            known.add(Key(slot, name, last))
        starts = known - self.outcomes
        for key in sorted(starts):
            if self.is_over(key):
                begun = key in self.begun
                yield Lost(key, job, self._failure(key, array, task, begun=begun), begun)

    def _failure(self, key: Key, array: Path, task: Task | None, *, begun: bool) -> Failure:
        state, output = (
            self._state(key, task),
            reader.last_output(array / "log" / f"{key.task}.log"),
        )
        cause = CAUSES.get(state, Cause.CRASHED)
        if cause == Cause.CRASHED and OVER_MEMORY.search(output):
            cause = Cause.OUT_OF_MEMORY
        where = (
            f" on {task.node}"
            if task and task.node and begun and key.restart == task.restarts
            else ""
        )
        word = WORDS.get(cause, f"ended without a result ({self._end(state, task)})")
        before = "" if begun else " before it began"
        reason = f"Slurm's task {key.task}, start {key.restart + 1}, {word}{before}{where}."
        return Failure(cause=cause, reason=reason, output=output)

    def _end(self, state: str, task: Task | None) -> str:
        if not state:
            return "Slurm no longer knows it and keeps no accounts"
        return f"{state}, {task.exit}" if task and task.exit else state

    def _state(self, key: Key, task: Task | None) -> str:
        """How this start ended: by squeue if it is the task's last, else by sacct, else by what its driver noted."""
        if task is not None and key.restart == task.restarts and is_over(task.state):
            return task.state
        starts = (self.history or {}).get(key.task, [])
        if key.restart < len(starts) and starts[key.restart] in CAUSES:
            return starts[key.restart]
        # Of this start of the task, for whichever of its processes: those behind that one never began.
        note = next(self.folder.running.glob(f"*.{key.task}.{key.restart}{TERMINATED}"), None)
        if note is None:
            return "NODE_FAIL" if task is not None else ""
        noted = note.read_text()
        if is_over(noted) or noted in CAUSES:
            return noted
        return "REQUEUED" if task is not None else ""


def _number(array: Path) -> str:
    """Under which sbatch took it; empty if nobody came to write that down and none of its tasks began."""
    link = array / "job"
    return link.readlink().name if link.is_symlink() else ""
