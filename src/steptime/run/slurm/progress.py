"""How far a campaign is: the state of every process, causes of failure, and the time left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.run.slurm.client import Slurm, Task
from steptime.run.slurm.folder import CampaignFolder, slot_of
from steptime.run.slurm.ledger import Ledger
from steptime.store import reader

WAITING, RUNNING, DONE, FAILED = STATES = ("waiting", "running", "done", "failed")
NOT_SUBMITTED = "not submitted"
# In these states Slurm has the task, but does not run it.
QUEUED_STATES = ("PENDING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")


class StoredFailure(NamedTuple):
    cause: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ProcessStatus:
    """One process of the campaign."""

    case: Case
    process: int
    state: str
    task: str = ""  # Slurm's id of it
    node: str = ""
    cause: str = ""  # a Cause, or NOT_SUBMITTED
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "case": self.case.to_dict(), "key": self.case.key}


@dataclass(frozen=True, kw_only=True)
class Progress:
    session: str
    name: str
    processes: list[ProcessStatus]
    seconds_left: float | None  # None: too few have ended to tell
    results: int = 0  # since the latest submission: what `seconds_left` is based on
    ghosts: int = 0  # late results of lost nodes, which were set aside
    lost: int = 0  # processes with a lost start that is not written down yet
    arrays: list[str] = field(default_factory=list)

    def count(self, state: str) -> int:
        return sum(process.state == state for process in self.processes)

    @property
    def is_over(self) -> bool:
        return not self.count(WAITING) and not self.count(RUNNING)

    @property
    def causes(self) -> Counter[str]:
        return Counter(process.cause for process in self.processes if process.state == FAILED)

    @property
    def basis(self) -> str:
        """What the time left is based on."""
        if self.seconds_left is None or self.is_over:
            return ""
        return f"as fast as the last {self.results} results came in"

    def to_dict(self) -> dict[str, Any]:
        return {
            "campaign": self.session,
            "name": self.name,
            **{state: self.count(state) for state in STATES},
            "causes": dict(self.causes),
            "seconds_left": self.seconds_left,
            "basis": self.basis,
            "ghosts": self.ghosts,
            "slurm_arrays": self.arrays,
            "processes": [process.to_dict() for process in self.processes],
        }


def read_progress(folder: CampaignFolder, slurm: Slurm) -> Progress:
    """Reads only: `collect` writes down what was lost."""
    ledger = Ledger(folder, slurm)
    results = folder.results()
    lost: dict[str, StoredFailure] = {}
    for start in ledger.lost_starts():
        lost[start.key.slot] = StoredFailure(start.failure.cause, start.failure.reason)
    processes = _process_statuses(folder, ledger, results, lost)
    facts = folder.facts()
    # An earlier submission may have run on other nodes, at another speed.
    newest_array = folder.newest_array()
    result_times = sorted(time for time in results.values() if time >= newest_array)
    unfinished = sum(process.state in (WAITING, RUNNING) for process in processes)
    numbers = {task.array for tasks in ledger.tasks.values() for task in tasks.values()}
    return Progress(
        session=folder.session,
        name=facts["title"] or facts["name"],
        processes=processes,
        seconds_left=estimate_seconds_left(result_times, unfinished),
        results=len(result_times),
        ghosts=len(folder.ghosts()),
        lost=len(lost),
        arrays=sorted(numbers, key=int),
    )


def _process_statuses(
    folder: CampaignFolder,
    ledger: Ledger,
    results: dict[str, float],
    lost: dict[str, StoredFailure],
) -> list[ProcessStatus]:
    live = ledger.live()
    jobs = {slot_of(job): job for task in ledger.jobs.values() for job in task}
    failures = dict(lost)
    if len(jobs) > len(results) + len(live):
        failures = _stored_failures(folder) | lost
    begun = {(key.slot, key.task) for key in ledger.begun}
    # A task with one process has begun it as soon as the task runs.
    single = {slot_of(task[0]) for task in ledger.jobs.values() if len(task) == 1}
    statuses = []
    for slot, job in jobs.items():
        if slot in results:
            status = ProcessStatus(case=job.case, process=job.process, state=DONE)
        elif slot in live:
            has_begun = slot in single or (slot, live[slot].id) in begun
            status = _live_status(job, live[slot], has_begun=has_begun)
        else:
            status = _failed_status(job, failures.get(slot))
        statuses.append(status)
    return statuses


def estimate_seconds_left(result_times: list[float], unfinished: int) -> float | None:
    """As fast as results came in so far."""
    if not unfinished:
        return 0.0
    if len(result_times) < 2:
        return None
    seconds_per_result = (result_times[-1] - result_times[0]) / (len(result_times) - 1)
    return unfinished * seconds_per_result


def _live_status(job: Job, task: Task, *, has_begun: bool) -> ProcessStatus:
    is_queued = task.state in QUEUED_STATES
    return ProcessStatus(
        case=job.case,
        process=job.process,
        state=RUNNING if has_begun and not is_queued else WAITING,
        task=task.id,
        node=task.node,
        reason=task.reason if is_queued else "",
    )


def _failed_status(job: Job, failure: StoredFailure | None) -> ProcessStatus:
    return ProcessStatus(
        case=job.case,
        process=job.process,
        state=FAILED,
        cause=failure.cause if failure else NOT_SUBMITTED,
        reason=failure.reason if failure else "",
    )


def _stored_failures(folder: CampaignFolder) -> dict[str, StoredFailure]:
    """Of slots without a result. A store may hold far more than this campaign."""
    failures: dict[str, StoredFailure] = {}
    missing = set()
    for slot, identifier in folder.unsuccessful().items():
        failure = _read_failure(folder.store.journal(identifier))
        if failure:
            failures[slot] = failure
        else:
            missing.add(identifier)
    if missing:
        # Their journals were compacted, so the whole store has to be read.
        for attempt in folder.store.attempts():
            if attempt.id in missing and attempt.failure:
                slot = f"{attempt.case.key}-{attempt.process}"
                failures[slot] = StoredFailure(attempt.failure.cause, attempt.failure.reason)
    return failures


@lru_cache(maxsize=4096)
def _read_failure(path: Path) -> StoredFailure | None:
    """Cached: a journal that has ended never changes."""
    attempt = reader.read(path) if path.exists() else None
    if attempt is None or attempt.failure is None:
        return None
    return StoredFailure(attempt.failure.cause, attempt.failure.reason)
