"""Measure cases: rounds of fresh processes in random order, continued after any interruption."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import random
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steptime import plugins, workloads
from steptime.analysis import stopping
from steptime.analysis.flags.timing import session_drift
from steptime.analysis.process import measured_processes
from steptime.core.accuracy import known_findings
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import UnreadableFile
from steptime.core.executor import Executor
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Record
from steptime.core.retry import gives_up, is_final
from steptime.run import local
from steptime.run.smaller_batch import with_smaller_batches
from steptime.run.watch import NullWatch, Watch
from steptime.store.folder import FolderStore
from steptime.store.journal import age_order, uuid7

LOOKS_BEFORE_GAPS = 2


def run(
    cases: Sequence[Case],
    protocol: Protocol,
    store: FolderStore,
    *,
    again: bool = False,
    watch: Watch | None = None,
    executor: Executor | None = None,
) -> list[Record]:
    """Continue the newest session of the same plan. `again` starts a new one in any case.

    A session that is complete is returned as it is."""
    plan = plan_hash(cases, protocol)
    with contextlib.ExitStack() as held:
        # Held before the store is read, so that a second run cannot start beside the first.
        held.enter_context(store.hold(plan))
        store.tidy(plan)
        earlier = None
        if not again:
            earlier = newest_session(store, plan)
            earlier = earlier or session_before_mending(store, cases, protocol)
        if earlier is not None and earlier.plan != plan:
            # It may still run, without the files that were unreadable.
            held.enter_context(store.hold(earlier.plan))
            store.tidy(earlier.plan)
        session = Session(
            id=earlier.session if earlier else uuid7(),
            plan=plan,
            planned_cases=list({case.key: case for case in cases}.values()),
            protocol=protocol,
            store=store,
            watch=watch or NullWatch(),
            executor=executor or local.LocalExecutor(),
        )
        session.load()
        session.measure()
    return session.records()


def plan_hash(
    cases: Sequence[Case],
    protocol: Protocol,
    location: Sequence[Any] = (),
    unreadable: Collection[str] = (),
) -> str:
    """Equal for the same work by the same code, measured the same way in the same place.

    `unreadable` are keys of cases that count as if their files could not be read."""
    work = []
    for case in cases:
        digest = "" if case.key in unreadable else network_digest(case)
        work.append((case.key, digest))
    frameworks = sorted({case.framework for case in cases})
    # A result of an older lowering is no result of this one.
    programs = [plugins.program_digest(framework) for framework in frameworks]
    facts = [sorted(work), programs, protocol.preset, protocol.changes()]
    facts += location or describe_machine()
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def network_digest(case: Case) -> str:
    """Empty if the user's file of the network, or of its weights, cannot be read."""
    try:
        network = workloads.describe(case)
    except UnreadableFile:
        return ""
    return str(network.get("fingerprint", "") + network.get("weights", ""))


def describe_machine() -> list[str]:
    """This machine and what is installed on it. Another place makes another session."""
    facts = [platform.node(), platform.machine(), *installed_software()]
    machine_file = local.machine_file().text
    if machine_file:
        facts.append(machine_file)
    return facts


def installed_software() -> list[str]:
    installed = set()
    for folder in map(Path, sys.path):
        if folder.is_dir():
            installed |= {entry.name for entry in folder.glob("*.dist-info")}
    return [platform.python_version(), *sorted(installed)]


def newest_session(store: FolderStore, plan: str) -> Attempt | None:
    """An attempt of it."""
    attempts = [attempt for attempt in store.attempts() if attempt.plan == plan]
    return max(attempts, key=lambda attempt: age_order(attempt.session), default=None)


def session_before_mending(
    store: FolderStore, cases: Sequence[Case], protocol: Protocol
) -> Attempt | None:
    """An attempt of the newest session that lacks only cases whose files were unreadable.

    The user has mended such a file, and what was measured meanwhile is not measured again."""
    failed = {}
    for attempt in store.attempts():
        if is_unreadable(attempt):
            failed[attempt.session] = attempt
    for session in sorted(failed, key=age_order, reverse=True):
        keys = unreadable_keys(attempts_by_case(store, session))
        if failed[session].plan == plan_hash(cases, protocol, unreadable=keys):
            return failed[session]
    return None


def unreadable_keys(attempts: Mapping[str, Sequence[Attempt]]) -> set[str]:
    """Cases that were never measured, because a user's file could not be read.

    Those that were measured in spite of an earlier failure have the network that was read."""
    keys = set()
    for key, of_case in attempts.items():
        if any(map(is_unreadable, of_case)) and not measured_attempts(of_case):
            keys.add(key)
    return keys


def is_unreadable(attempt: Attempt) -> bool:
    return attempt.failure is not None and attempt.failure.cause == Cause.UNREADABLE


def attempts_by_case(store: FolderStore, session: str) -> dict[str, list[Attempt]]:
    """All attempts of the session, by the key of their case."""
    attempts: dict[str, list[Attempt]] = {}
    for attempt in store.attempts():
        if attempt.session == session:
            attempts.setdefault(attempt.case.key, []).append(attempt)
    return attempts


def measured_attempts(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    return tuple(attempt for attempt in attempts if attempt.measurement is not None)


@dataclass
class Session:
    id: str
    plan: str
    planned_cases: list[Case]
    protocol: Protocol
    store: FolderStore
    watch: Watch
    executor: Executor
    # The planned cases, and those with a smaller batch if memory ran out.
    cases: list[Case] = field(default_factory=list)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    # Of this run alone: the next run may try again what this one gives up.
    failures: dict[str, list[Cause]] = field(default_factory=lambda: defaultdict(list))
    unfinished: dict[str, bool] = field(default_factory=dict)

    def load(self) -> None:
        """Read what the session has so far. The store must be held."""
        attempts = attempts_by_case(self.store, self.id)
        cases = with_smaller_batches(self.planned_cases, attempts, self.protocol)
        self.cases = list(cases.values())
        self.attempts = {case.key: attempts.get(case.key, []) for case in self.cases}
        self.unfinished = {case.key: self.wants_more(case) for case in self.cases}

    def measure(self) -> None:
        while True:
            cases = [case for case in self.cases if self.unfinished[case.key]]
            if not cases:
                return
            # A random order in each round, so that what drifts does not favour a case.
            rng = random.Random(f"{self.id} {self.done}")
            rng.shuffle(cases)
            for case in cases:
                time.sleep(self.gap_seconds(rng))
                self.measure_once(case)

    def wants_more(self, case: Case) -> bool:
        attempts = self.attempts[case.key]
        for attempt in attempts:
            if attempt.failure and is_final(attempt.failure.cause):
                return False
        if gives_up(self.failures[case.key]):
            return False
        measured = measured_attempts(attempts)
        return not measured or stopping.wants_more(Record(attempts=measured))

    def measure_once(self, case: Case) -> None:
        attempts = self.attempts[case.key]
        job = Job(
            id=uuid7(),
            session=self.id,
            plan=self.plan,
            process=max((attempt.process for attempt in attempts), default=-1) + 1,
            case=case,
            protocol=self.next_protocol(case),
            # Tells how many processes of other cases ran between two of this case.
            environment={"session_process": self.done},
            options=known_findings(attempts),
        )
        self.watch.on_start(job, self.done, self.expected_processes)
        attempt = self.executor.run(job, self.store)
        attempts.append(attempt)
        if attempt.failure:
            self.failures[case.key].append(attempt.failure.cause)
        self.unfinished[case.key] = self.wants_more(case)
        self.add_smaller_batches()
        self.watch.on_finish(attempt)

    def next_protocol(self, case: Case) -> Protocol:
        measured = measured_attempts(self.attempts[case.key])
        return stopping.next_protocol(Record(attempts=measured)) if measured else self.protocol

    def add_smaller_batches(self) -> None:
        cases = with_smaller_batches(self.planned_cases, self.attempts, self.protocol)
        for key, case in cases.items():
            if key not in self.attempts:
                self.cases.append(case)
                self.attempts[key] = []
                self.unfinished[key] = True

    def gap_seconds(self, rng: random.Random) -> float:
        """How long to pause before the next process.

        A single case runs at even intervals. If it drifts, idle gaps break up whatever else on
        the machine keeps time with it."""
        if len(self.cases) > 1:
            return 0.0
        measured = measured_attempts(self.attempts[self.cases[0].key])
        looks = [look for look in stopping.planned_looks(self.protocol) if look <= len(measured)]
        if len(looks) <= LOOKS_BEFORE_GAPS or not session_drift(measured_processes(measured)):
            return 0.0
        return rng.uniform(0.0, stopping.elapsed_seconds(measured[-1]))

    @property
    def done(self) -> int:
        return sum(len(attempts) for attempts in self.attempts.values())

    @property
    def expected_processes(self) -> int:
        """The least number of processes: results decide whether it takes more."""
        total = 0
        for key, attempts in self.attempts.items():
            total += len(attempts)
            if self.unfinished[key]:
                total += max(1, self.protocol.processes_least - len(attempts))
        return total

    def records(self) -> list[Record]:
        records = []
        for attempts in self.attempts.values():
            if attempts:
                ordered = sorted(attempts, key=lambda attempt: attempt.process)
                records.append(Record(attempts=tuple(ordered)))
        return records
