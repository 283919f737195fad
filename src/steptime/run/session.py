"""Cases by themselves: rounds of fresh processes in random order, continued after any interruption."""

from __future__ import annotations

import hashlib
import json
import platform
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steptime import workloads
from steptime.analysis import stopping
from steptime.analysis.flags.timing import session_drift
from steptime.analysis.process import measured_processes
from steptime.core.case import Case
from steptime.core.cause import Cause, gives_up
from steptime.core.executor import Executor
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Record
from steptime.run import local
from steptime.run.smaller_batch import with_smaller
from steptime.run.watch import NullWatch, Watch
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

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
    """Continues the newest session of the same plan; a finished one is returned as it is unless asked for `again`."""
    plan = plan_of(cases, protocol)
    with store.hold(
        plan
    ):  # before the store is asked what is there: a second run must not start beside the first
        store.tidy(plan)
        session = Session(
            id=(None if again else newest(store, plan)) or uuid7(),
            plan=plan,
            cases=list({case.key: case for case in cases}.values()),
            protocol=protocol,
            store=store,
            watch=watch or NullWatch(),
            executor=executor or local.LocalExecutor(),
        )
        session.remember()
        session.measure()
    return session.records()


def plan_of(cases: Sequence[Case], protocol: Protocol, where: Sequence[Any] = ()) -> str:
    """Equal for the same work measured the same way in the same place, in whatever order it was asked for."""
    told = ((case.key, workloads.load(case.workload).describe(case)) for case in cases)
    work = sorted(
        (key, network.get("fingerprint", "") + network.get("weights", "")) for key, network in told
    )
    text = json.dumps([work, protocol.preset, protocol.changed(), *(where or place())])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def place() -> list[str]:
    """This machine and what is installed on it: processes of another place are not of the same session."""
    machine = local.machine_file().text
    own = [platform.node(), platform.machine(), *software()]
    return [*own, machine] if machine else own


def software() -> list[str]:
    folders = [Path(folder) for folder in sys.path if Path(folder).is_dir()]
    installed = {entry.name for folder in folders for entry in folder.glob("*.dist-info")}
    return [platform.python_version(), *sorted(installed)]


def newest(store: FolderStore, plan: str) -> str | None:
    return max(
        (attempt.session for attempt in store.attempts() if attempt.plan == plan), default=None
    )


@dataclass
class Session:
    id: str
    plan: str
    cases: list[Case]
    protocol: Protocol
    store: FolderStore
    watch: Watch
    executor: Executor
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    # Of this run alone: what an earlier run gave up may be tried again.
    failures: dict[str, list[Cause]] = field(default_factory=lambda: defaultdict(list))
    wanting: dict[str, bool] = field(default_factory=dict)
    planned: list[Case] = field(default_factory=list)  # the others are those with a smaller batch

    def remember(self) -> None:
        """Read while the session is held, so that nothing another process adds is missed."""
        known = self.store.session_attempts(self.id)
        self.planned = list(self.cases)
        self.cases = list(with_smaller(self.planned, known, self.protocol).values())
        self.attempts = {case.key: known.get(case.key, []) for case in self.cases}
        self.wanting = {case.key: self.wants_more(case) for case in self.cases}

    def measure(self) -> None:
        while wanting := [case for case in self.cases if self.wanting[case.key]]:
            rng = random.Random(f"{self.id} {self.done}")
            rng.shuffle(wanting)
            for case in wanting:
                time.sleep(self.gap_seconds(rng))
                self.measure_once(case)

    def wants_more(self, case: Case) -> bool:
        tried = self.attempts[case.key]
        settled = any(attempt.failure and attempt.failure.cause.is_final for attempt in tried)
        if settled or gives_up(self.failures[case.key]):
            return False
        return not measured(tried) or stopping.wants_more(Record(attempts=measured(tried)))

    def measure_once(self, case: Case) -> None:
        tried = self.attempts[case.key]
        good = measured(tried)
        job = Job(
            id=uuid7(),
            session=self.id,
            plan=self.plan,
            process=max((attempt.process for attempt in tried), default=-1) + 1,
            case=case,
            protocol=stopping.next_protocol(Record(attempts=good)) if good else self.protocol,
        )
        self.watch.started(job, self.done, self.expected)
        attempt = self.executor.run(job, self.store)
        tried.append(attempt)
        if attempt.failure:
            self.failures[case.key].append(attempt.failure.cause)
        self.wanting[case.key] = self.wants_more(case)
        self.add_smaller()
        self.watch.finished(attempt)

    def add_smaller(self) -> None:
        for key, case in with_smaller(self.planned, self.attempts, self.protocol).items():
            if key not in self.attempts:
                self.cases.append(case)
                self.attempts[key], self.wanting[key] = [], True

    def gap_seconds(self, rng: random.Random) -> float:
        """A single case runs at even intervals; idle gaps break up whatever else on the machine keeps time with it."""
        good = measured(self.attempts[self.cases[0].key])
        looks = [look for look in stopping.planned_looks(self.protocol) if look <= len(good)]
        if len(self.cases) > 1 or len(looks) <= LOOKS_BEFORE_GAPS:
            return 0.0
        drifts = session_drift(measured_processes(good)) is not None
        return rng.uniform(0.0, stopping.elapsed_seconds(good[-1])) if drifts else 0.0

    @property
    def done(self) -> int:
        return sum(map(len, self.attempts.values()))

    @property
    def expected(self) -> int:
        least = self.protocol.processes_least
        counts = [(len(tried), self.wanting[key]) for key, tried in self.attempts.items()]
        return sum(max(count + 1, least) if wanting else count for count, wanting in counts)

    def records(self) -> list[Record]:
        groups = (
            sorted(tried, key=lambda attempt: attempt.process) for tried in self.attempts.values()
        )
        return [Record(attempts=tuple(group)) for group in groups if group]


def measured(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    return tuple(attempt for attempt in attempts if attempt.measurement is not None)
