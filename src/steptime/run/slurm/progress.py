"""How far a campaign is: every process with its state, causes of what failed, and the time that is left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from steptime.core.case import Case
from steptime.run.slurm.client import Slurm, Task
from steptime.run.slurm.folder import CampaignFolder, slot_of
from steptime.run.slurm.ledger import Ledger
from steptime.store import reader

WAITING, RUNNING, DONE, FAILED = STATES = ("waiting", "running", "done", "failed")


@dataclass(frozen=True, kw_only=True)
class Place:
    """One process of the campaign: where it stands now."""

    case: Case
    process: int
    state: str
    task: str = ""  # Slurm's name of it
    node: str = ""
    cause: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "case": self.case.to_dict(), "key": self.case.key}


@dataclass(frozen=True, kw_only=True)
class Progress:
    session: str
    name: str
    places: list[Place]
    seconds_left: float | None  # None: too little has ended to tell
    results: int = 0  # that this follows from: those since the latest submission
    ghosts: int = 0  # late results of lost nodes, kept aside
    lost: int = 0  # processes of which a start was lost and nobody has written that down yet
    arrays: list[str] = field(default_factory=list)

    def count(self, state: str) -> int:
        return sum(place.state == state for place in self.places)

    @property
    def is_over(self) -> bool:
        return not self.count(WAITING) and not self.count(RUNNING)

    @property
    def causes(self) -> Counter[str]:
        return Counter(place.cause for place in self.places if place.state == FAILED)

    @property
    def basis(self) -> str:
        """What the time left stands on."""
        told = self.seconds_left is not None and not self.is_over
        return f"as fast as the last {self.results} results came in" if told else ""

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
            "processes": [place.to_dict() for place in self.places],
        }


def progress(folder: CampaignFolder, slurm: Slurm) -> Progress:
    """Reads only: what was lost is named here and written down by `collect`."""
    ledger = Ledger(folder, slurm)
    results, live = folder.results(), ledger.live()
    jobs = {slot_of(job): job for task in ledger.jobs.values() for job in task}
    lost = {one.key.slot: one.failure for one in ledger.lost()}
    stored = _stored_failures(folder) if len(jobs) > len(results) + len(live) else {}
    begun = {(key.slot, key.task) for key in ledger.begun}
    alone = {slot_of(task[0]) for task in ledger.jobs.values() if len(task) == 1}
    places = []
    for slot, job in jobs.items():
        whose: dict[str, Any] = {"case": job.case, "process": job.process}
        if slot in results:
            places.append(Place(**whose, state=DONE))
        elif slot in live:
            places.append(
                _live_place(
                    whose, live[slot], begun=slot in alone or (slot, live[slot].id) in begun
                )
            )
        else:
            cause, reason = (
                (lost[slot].cause, lost[slot].reason)
                if slot in lost
                else stored.get(slot, ("", ""))
            )
            places.append(
                Place(**whose, state=FAILED, cause=cause or "not submitted", reason=reason)
            )
    left = sum(place.state in (WAITING, RUNNING) for place in places)
    facts = folder.facts()
    ended = sorted(when for when in results.values() if when >= folder.newest_array())
    numbers = sorted(
        {task.array for tasks in ledger.tasks.values() for task in tasks.values()}, key=int
    )
    return Progress(
        session=folder.session,
        name=facts["title"] or facts["name"],
        places=places,
        seconds_left=seconds_left(ended, left),
        results=len(ended),
        ghosts=len(folder.ghosts()),
        lost=len(lost),
        arrays=numbers,
    )


def seconds_left(ended: list[float], left: int) -> float | None:
    """As fast as results came in so far."""
    if not left:
        return 0.0
    if len(ended) < 2:
        return None
    return left * (ended[-1] - ended[0]) / (len(ended) - 1)


def _live_place(whose: dict[str, Any], task: Task, *, begun: bool) -> Place:
    runs = task.state not in ("PENDING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
    if runs and begun:
        return Place(**whose, state=RUNNING, task=task.id, node=task.node)
    return Place(
        **whose, state=WAITING, task=task.id, node=task.node, reason="" if runs else task.reason
    )


def _stored_failures(folder: CampaignFolder) -> dict[str, tuple[str, str]]:
    """Of slots without a result. Read one by one: a store may hold far more than this campaign."""
    found, absent = {}, set()
    for slot, identifier in folder.unsuccessful().items():
        failure = _failure_at(folder.store.journal(identifier))
        found[slot] = failure or ("", "")
        absent |= set() if failure else {identifier}
    for attempt in folder.store.attempts() if absent else ():  # compacted meanwhile
        if attempt.id in absent and attempt.failure:
            found[f"{attempt.case.key}-{attempt.process}"] = (
                attempt.failure.cause,
                attempt.failure.reason,
            )
    return found


@lru_cache(maxsize=4096)
def _failure_at(path: Path) -> tuple[str, str] | None:
    """An ended journal never changes."""
    attempt = reader.read(path) if path.exists() else None
    return (attempt.failure.cause, attempt.failure.reason) if attempt and attempt.failure else None
