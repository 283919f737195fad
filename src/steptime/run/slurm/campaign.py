"""A plan on a cluster: hands to Slurm what is missing and takes in what came back. In between nobody need wait."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from steptime.analysis import stopping
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.record import Attempt, Record
from steptime.plan.expand import Plan
from steptime.plan.machine_file import MachineFile, describe_ways
from steptime.run.session import installed_software, measured_attempts, plan_hash
from steptime.run.slurm.client import NoAnswer, Slurm
from steptime.run.slurm.folder import CAMPAIGNS, LOST, CampaignFolder, find
from steptime.run.slurm.ledger import Ledger, Lost
from steptime.run.slurm.progress import Progress, progress
from steptime.run.slurm.script import Array, arrays, script
from steptime.run.smaller_batch import with_smaller_batches
from steptime.store import journal
from steptime.store.atomic import explain_write_errors
from steptime.store.folder import FolderStore
from steptime.store.journal import now, uuid7

__all__ = [
    "NoAnswer",
    "Slurm",
    "Submission",
    "cancel",
    "collect",
    "find",
    "look",
    "preview",
    "records",
    "submit",
]


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What was handed over, and what did not have to be."""

    session: str
    arrays: list[Array]
    scripts: list[str]
    numbers: list[str] = field(
        default_factory=list
    )  # Slurm's, one for each array; none of a dry run
    done: int = 0  # processes that have their result
    live: int = 0  # processes that Slurm has in hand
    settled: int = 0  # cases that another try would only repeat

    @property
    def submitted(self) -> int:
        return sum(len(array.jobs) for array in self.arrays)


def submit(
    plan: Plan, store: FolderStore, machine: MachineFile, *, again: bool = False
) -> Submission:
    """Continues the newest campaign of the same plan: what has its result, or is in the queue, is left alone."""
    identity = _identity(plan, machine)
    slurm = Slurm()
    most_tasks = slurm.largest_array()  # first: without Slurm nothing is begun
    lock = store.hold(f"campaign-{identity}", "This plan is being submitted from")
    with (
        lock,
        explain_write_errors(
            f"The store {store.path}", "Make room there: the same command goes on."
        ),
    ):
        session = (None if again else _newest(store, identity)) or uuid7()
        folder = CampaignFolder(store, session)
        if folder.path.exists():
            collect(folder, slurm)
        else:
            facts = {"plan": identity, "name": plan.name, "title": plan.title, "started": now()}
            folder.make({**facts, "cases": len(plan.cases)})
        state = _State(plan, machine, folder, Ledger(folder, slurm))
        found = state.submission(most_tasks)
        numbers = [_hand_over(array, folder, machine, slurm) for array in found.arrays]
        return Submission(**{**vars(found), "numbers": numbers})


def preview(
    plan: Plan, store: FolderStore, machine: MachineFile, *, most_tasks: int = 1001
) -> Submission:
    """What would be submitted if nothing were done yet. Asks nobody, writes nothing."""
    folder = CampaignFolder(store, uuid7())
    return _State(plan, machine, folder, None).submission(most_tasks)


def _hand_over(array: Array, folder: CampaignFolder, machine: MachineFile, slurm: Slurm) -> str:
    """Killed in between, the next submit finds the array by its name if Slurm took it, and passes over it if not."""
    path = folder.add_array(array.tasks, machine.text)
    text = script(array, path.absolute(), folder.name(path))
    (path / "script.sh").write_text(text)
    number = slurm.submit(text)
    folder.number(path, number)
    return number


def _identity(plan: Plan, machine: MachineFile) -> str:
    """More time, another account or another throttle continue a campaign; other nodes or modules begin a new one."""
    if not plan.cases:
        raise SteptimeError(
            f"{plan.title or plan.name}: every case is excluded, nothing is left to submit."
        )
    sections = {case.node_type: machine.section(case.node_type) for case in plan.cases}
    for case in plan.cases:
        sections[case.node_type].request(case)
        if lacking := machine.lacks(case):
            raise SteptimeError(lacking)
    ways = [describe_ways(machine.commands)]
    if machine.launches:
        ways.append(describe_ways(machine.launches))
    where = [
        "slurm",
        *installed_software(),
        *ways,
        {name: sections[name].shape() for name in sorted(sections)},
    ]
    return plan_hash(plan.cases, plan.protocol, where)


def _newest(store: FolderStore, identity: str) -> str | None:
    for path in sorted(store.path.glob(f"{CAMPAIGNS}/*/campaign.json"), reverse=True):
        if CampaignFolder(store, path.parent.name).facts()["plan"] == identity:
            return path.parent.name
    return None


class _State:
    """What the store has of a campaign, and what is therefore missing."""

    def __init__(
        self, plan: Plan, machine: MachineFile, folder: CampaignFolder, ledger: Ledger | None
    ) -> None:
        self.plan, self.machine, self.folder = plan, machine, folder
        self.identity = _identity(plan, machine)
        self.live = ledger.live() if ledger else {}
        known = folder.store.session_attempts(folder.session) if ledger else {}
        self.cases = with_smaller_batches(plan.cases, known, plan.protocol)
        self.tried = {key: known.get(key, []) for key in self.cases}

    def submission(self, most_tasks: int) -> Submission:
        cases = list(self.cases.values())
        jobs = [job for case in cases for job in self._missing(case)]
        found = arrays(jobs, self.machine, most_tasks)
        done = {
            f"{key}-{good.process}"
            for key, tried in self.tried.items()
            for good in measured_attempts(tried)
        }
        return Submission(
            session=self.folder.session,
            arrays=found,
            scripts=[script(array, self.folder.path.absolute(), "NAME") for array in found],
            done=len(done),
            live=len(self.live.keys() - done),  # a task in hand has processes that are done already
            settled=sum(self._is_settled(case) for case in cases),
        )

    def _missing(self, case: Case) -> Iterator[Job]:
        good = measured_attempts(self.tried[case.key])
        if self._is_settled(case):
            return
        protocol = stopping.next_protocol(Record(attempts=good)) if good else self.plan.protocol
        numbers = {attempt.process for attempt in good}
        request = list(self.machine.section(case.node_type).request(case))
        for process in range(self._wanted(good)):
            if process not in numbers and f"{case.key}-{process}" not in self.live:
                yield Job(
                    id=uuid7(),
                    session=self.folder.session,
                    plan=self.identity,
                    process=process,
                    case=case,
                    protocol=protocol,
                    environment={"slurm": {"request": request}},
                )

    def _wanted(self, good: Sequence[Attempt]) -> int:
        """How many processes to have: the least, then up to the next look while the interval is too wide."""
        protocol = self.plan.protocol
        if len(good) < protocol.processes_least:
            return protocol.processes_least
        if not stopping.wants_more(Record(attempts=tuple(good))):
            return 0
        return next((look for look in stopping.planned_looks(protocol) if look > len(good)), 0)

    def _is_settled(self, case: Case) -> bool:
        """Unless it may use more now: of memory, say."""
        request = list(self.machine.section(case.node_type).request(case))
        return any(
            attempt.failure
            and attempt.failure.cause.is_final
            and attempt.environment.get("slurm", {}).get("request") == request
            for attempt in self.tried[case.key]
        )


def collect(folder: CampaignFolder, slurm: Slurm) -> list[Lost]:
    """Takes ended journals to their place and writes down what was lost, and why. Returns the latter."""
    with folder.store.hold(f"collect-{folder.session}", "Results are being collected in"):
        for path in folder.running.glob(f"*{LOST}"):  # an earlier collector was killed
            folder.deliver(path)
        ledger = Ledger(folder, slurm)
        for key in filter(ledger.is_over, ledger.begun):
            folder.deliver(folder.journal(key))
        found = [lost for lost in ledger.lost() if not folder.has_outcome(lost.key)]
        for lost in found:
            _write_down(lost, folder)
    return found


def _write_down(lost: Lost, folder: CampaignFolder) -> None:
    path = folder.running / f"{lost.key}{LOST}"
    path.unlink(missing_ok=True)
    told = {
        **lost.job.environment.get("slurm", {}),
        "task": lost.key.task,
        "restart": lost.key.restart,
    }
    values = {
        **vars(lost.job),
        "id": uuid7(),
        "environment": {**lost.job.environment, "slurm": told},
    }
    journal.close_failed(path, Job(**values), lost.failure)
    folder.deliver(path)


def look(folder: CampaignFolder, slurm: Slurm) -> Progress:
    """How far it is. Causes are written down at once: without accounts Slurm forgets them within minutes."""
    found = progress(folder, slurm)
    if found.lost:
        with contextlib.suppress(
            SteptimeError
        ):  # the store can only be read, or somebody else collects
            collect(folder, slurm)
    return found


def records(folder: CampaignFolder) -> list[Record]:
    return [record for record in folder.store.records() if record.session == folder.session]


def cancel(folder: CampaignFolder, slurm: Slurm, *, waiting_only: bool = False) -> int:
    """How many tasks are asked to end. What they leave is told by `collect`."""
    ledger = Ledger(folder, slurm)
    live = {task.id: task for task in ledger.live().values()}
    chosen = [task for task in live.values() if not waiting_only or task.state == "PENDING"]
    slurm.cancel(sorted({task.array for task in chosen}), waiting_only=waiting_only)
    return len(chosen)
