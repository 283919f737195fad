"""A plan on a cluster: submit to Slurm what is missing, and collect what came back."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from steptime.analysis import stopping
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.record import Attempt, Record
from steptime.core.retry import is_final
from steptime.core.secrets import redact_words
from steptime.plan.expand import Plan
from steptime.plan.machine_file import MachineFile, describe_ways
from steptime.run.session import (
    attempts_by_case,
    installed_software,
    measured_attempts,
    plan_hash,
    unreadable_keys,
)
from steptime.run.slurm.client import NoAnswer, Slurm
from steptime.run.slurm.folder import CAMPAIGNS, LOST, CampaignFolder, DamagedCampaign, find
from steptime.run.slurm.ledger import Ledger, Lost
from steptime.run.slurm.progress import Progress, read_progress
from steptime.run.slurm.script import Array, make_arrays, without_secrets, write_script
from steptime.run.smaller_batch import with_smaller_batches
from steptime.store import journal
from steptime.store.atomic import explain_write_errors
from steptime.store.folder import FolderStore
from steptime.store.journal import age_order, now, uuid7
from steptime.store.permissions import write_private

__all__ = [
    "NoAnswer",
    "Slurm",
    "Submission",
    "cancel",
    "collect",
    "find",
    "preview",
    "records",
    "submit",
    "update_progress",
]


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What was submitted, and what did not have to be."""

    session: str
    arrays: list[Array]
    scripts: list[str]
    numbers: list[str] = field(default_factory=list)  # Slurm's; empty for a dry run
    done: int = 0  # processes that have their result
    live: int = 0  # processes that wait or run in Slurm
    settled: int = 0  # cases that would only fail again

    @property
    def job_count(self) -> int:
        return sum(len(array.jobs) for array in self.arrays)


def submit(
    plan: Plan, store: FolderStore, machine: MachineFile, *, again: bool = False
) -> Submission:
    """Continue the newest campaign of the same plan. `again` starts a new one in any case.

    Processes that have their result, or are in the queue, are left alone."""
    identity = _campaign_hash(plan, machine)
    slurm = Slurm()
    # Asked first: without Slurm nothing is begun.
    most_tasks = slurm.largest_array()
    lock = store.hold(f"campaign-{identity}", "This plan is being submitted from")
    advice = "Make room there: the same command goes on."
    with lock, explain_write_errors(f"The store {store.path}", advice):
        session = None if again else _newest_campaign(store, plan, machine)
        folder = CampaignFolder(store, session or uuid7())
        if folder.path.exists():
            collect(folder, slurm)
        else:
            facts = {"plan": identity, "name": plan.name, "title": plan.title, "started": now()}
            folder.make({**facts, "cases": len(plan.cases)})
        state = _CampaignState(plan, machine, folder, Ledger(folder, slurm))
        submission = state.submission(most_tasks)
        numbers = [_submit_array(array, folder, machine, slurm) for array in submission.arrays]
        return replace(submission, numbers=numbers)


def preview(
    plan: Plan, store: FolderStore, machine: MachineFile, *, most_tasks: int = 1001
) -> Submission:
    """What would be submitted if nothing were done yet. Calls no Slurm, writes nothing."""
    folder = CampaignFolder(store, uuid7())
    return _CampaignState(plan, machine, folder, None).submission(most_tasks)


def _submit_array(array: Array, folder: CampaignFolder, machine: MachineFile, slurm: Slurm) -> str:
    """Slurm's number of the array.

    If this process is killed in between, the next submit finds the array by its name if Slurm has
    it, and ignores it if not."""
    path = folder.add_array(array.tasks, machine.text)
    text = write_script(array, path.absolute(), folder.name(path))
    write_private(path / "script.sh", text)
    number = slurm.submit(text)
    folder.set_number(path, number)
    return number


def _campaign_hash(plan: Plan, machine: MachineFile, unreadable: Collection[str] = ()) -> str:
    """Equal if a submission continues the campaign.

    More time, another account or throttle continue it; other nodes or modules begin a new one."""
    _check_requests(plan, machine)
    shapes = {case.node_type: machine.section(case.node_type).shape() for case in plan.cases}
    location = ["slurm", *installed_software(), describe_ways(machine.commands)]
    if machine.launches:
        location.append(describe_ways(machine.launches))
    location.append({name: shapes[name] for name in sorted(shapes)})
    return plan_hash(plan.cases, plan.protocol, location, unreadable)


def _check_requests(plan: Plan, machine: MachineFile) -> None:
    """Raise if there is nothing to submit, or if the machine file does not fit a case."""
    if not plan.cases:
        raise SteptimeError(
            f"{plan.title or plan.name}: every case is excluded, nothing is left to submit."
        )
    for case in plan.cases:
        machine.section(case.node_type).request(case)  # raises if the section does not fit
        lacking = machine.lacks(case)
        if lacking:
            raise SteptimeError(lacking)


def _newest_campaign(store: FolderStore, plan: Plan, machine: MachineFile) -> str | None:
    identity = _campaign_hash(plan, machine)
    paths = store.path.glob(f"{CAMPAIGNS}/*/campaign.json")
    sessions = sorted((path.parent.name for path in paths), key=age_order, reverse=True)
    for session in sessions:
        # A damaged campaign must not keep others from being submitted.
        with contextlib.suppress(DamagedCampaign):
            first_identity = CampaignFolder(store, session).facts()["plan"]
            attempts = attempts_by_case(store, session)
            if identity in {first_identity, *_identities(attempts)}:
                return session
            # Files that were unreadable then may have been mended.
            unreadable = unreadable_keys(attempts)
            if unreadable and first_identity == _campaign_hash(plan, machine, unreadable):
                return session
    return None


def _identities(attempts: Mapping[str, Sequence[Attempt]]) -> set[str]:
    return {attempt.plan for of_case in attempts.values() for attempt in of_case}


class _CampaignState:
    """What the store has of a campaign, and what is therefore missing."""

    def __init__(
        self, plan: Plan, machine: MachineFile, folder: CampaignFolder, ledger: Ledger | None
    ) -> None:
        self.plan = plan
        self.machine = machine
        self.folder = folder
        _check_requests(plan, machine)
        # A preview loads no network, because that runs a user's file.
        self.identity = _campaign_hash(plan, machine) if ledger else ""
        self.live = ledger.live() if ledger else {}
        attempts = attempts_by_case(folder.store, folder.session) if ledger else {}
        self.cases = with_smaller_batches(plan.cases, attempts, plan.protocol)
        self.attempts = {key: attempts.get(key, []) for key in self.cases}

    def submission(self, most_tasks: int) -> Submission:
        cases = list(self.cases.values())
        jobs = [job for case in cases for job in self._missing_jobs(case)]
        arrays = make_arrays(jobs, self.machine, most_tasks)
        path = self.folder.path.absolute()
        done = self._done_slots()
        return Submission(
            session=self.folder.session,
            arrays=arrays,
            scripts=[write_script(without_secrets(array), path, "NAME") for array in arrays],
            done=len(done),
            # A task that runs may have processes that are done already.
            live=len(self.live.keys() - done),
            settled=sum(self._is_settled(case) for case in cases),
        )

    def _done_slots(self) -> set[str]:
        slots = set()
        for key, attempts in self.attempts.items():
            slots |= {f"{key}-{attempt.process}" for attempt in measured_attempts(attempts)}
        return slots

    def _missing_jobs(self, case: Case) -> Iterator[Job]:
        if self._is_settled(case):
            return
        measured = measured_attempts(self.attempts[case.key])
        protocol = self.plan.protocol
        if measured:
            protocol = stopping.next_protocol(Record(attempts=measured))
        done = {attempt.process for attempt in measured}
        request = self._request(case)
        for process in range(self._wanted_processes(measured)):
            if process in done or f"{case.key}-{process}" in self.live:
                continue
            yield Job(
                id=uuid7(),
                session=self.folder.session,
                plan=self.identity,
                process=process,
                case=case,
                protocol=protocol,
                environment={"slurm": {"request": request}},
            )

    def _wanted_processes(self, measured: Sequence[Attempt]) -> int:
        """The least number, then up to the next look while the interval is too wide."""
        protocol = self.plan.protocol
        if len(measured) < protocol.processes_least:
            return protocol.processes_least
        if not stopping.wants_more(Record(attempts=tuple(measured))):
            return 0
        for look in stopping.planned_looks(protocol):
            if look > len(measured):
                return look
        return 0

    def _is_settled(self, case: Case) -> bool:
        """Whether it failed for good, with the same request: more memory may help, for example."""
        request = self._request(case)
        for attempt in self.attempts[case.key]:
            same_request = attempt.environment.get("slurm", {}).get("request") == request
            if attempt.failure and is_final(attempt.failure.cause) and same_request:
                return True
        return False

    def _request(self, case: Case) -> list[str]:
        """As it is recorded, without secrets."""
        return redact_words(self.machine.section(case.node_type).request(case))


def collect(folder: CampaignFolder, slurm: Slurm) -> list[Lost]:
    """Deliver ended journals to the store, and write down what was lost. Returns the latter."""
    with folder.store.hold(f"collect-{folder.session}", "Results are being collected in"):
        # An earlier collector may have been killed.
        for path in folder.running_folder.glob(f"*{LOST}"):
            folder.deliver(path)
        ledger = Ledger(folder, slurm)
        for key in ledger.begun:
            if ledger.is_over(key):
                folder.deliver(folder.journal(key))
        lost_starts = [lost for lost in ledger.lost_starts() if not folder.has_outcome(lost.key)]
        for lost in lost_starts:
            _write_down(lost, folder)
    return lost_starts


def _write_down(lost: Lost, folder: CampaignFolder) -> None:
    path = folder.running_folder / f"{lost.key}{LOST}"
    path.unlink(missing_ok=True)
    slurm = dict(lost.job.environment.get("slurm", {}))
    slurm |= {"task": lost.key.task, "restart": lost.key.restart}
    environment = {**lost.job.environment, "slurm": slurm}
    journal.close_failed(path, replace(lost.job, id=uuid7(), environment=environment), lost.failure)
    folder.deliver(path)


def update_progress(folder: CampaignFolder, slurm: Slurm) -> Progress:
    """How far the campaign is.

    Lost starts are written down at once: without accounting, Slurm forgets them in minutes."""
    progress = read_progress(folder, slurm)
    if progress.lost:
        # The store may be read-only, or another process collects.
        with contextlib.suppress(SteptimeError):
            collect(folder, slurm)
    return progress


def records(folder: CampaignFolder) -> list[Record]:
    return [record for record in folder.store.records() if record.session == folder.session]


def cancel(folder: CampaignFolder, slurm: Slurm, *, waiting_only: bool = False) -> int:
    """Ask Slurm to end the campaign's tasks, and return their number.

    `collect` later writes down what they leave."""
    live = {task.id: task for task in Ledger(folder, slurm).live().values()}
    tasks = [task for task in live.values() if not waiting_only or task.state == "PENDING"]
    slurm.cancel(sorted({task.array for task in tasks}), waiting_only=waiting_only)
    return len(tasks)
