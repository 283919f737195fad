"""Two cases against each other: pairs of warm workers that take turns, until a verdict or the last look."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from steptime import workloads
from steptime.analysis.certificates import TASK, read_certificates
from steptime.analysis.compare import (
    Comparison,
    Pair,
    block_pairs,
    compare_pairs,
    different_work,
    wants_more_pairs,
    with_certificate_remark,
)
from steptime.core.case import Case
from steptime.core.cause import Cause, gives_up
from steptime.core.errors import SteptimeError
from steptime.core.executor import Executor, Resident
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.run import local
from steptime.run.session import newest, plan_of
from steptime.run.watch import NullWatch, Watch
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

NO_PARTNER = "Its partner in this pair failed."


class Refused(SteptimeError):
    """The two cases do not do the same work."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(
            "Not compared: "
            + "; ".join(reasons)
            + '. To compare all the same, say why with --force "…".'
        )
        self.reasons = list(reasons)


@dataclass(frozen=True)
class Compared:
    comparison: Comparison
    pairs: tuple[Pair, ...]


def compare(
    cases: tuple[Case, Case],
    protocol: Protocol,
    store: FolderStore,
    *,
    force: str = "",
    watch: Watch | None = None,
) -> Compared:
    """B, the second, against A; what an interrupted comparison of the same has measured is used.

    Raises Refused, or SteptimeError when one of the two cannot be measured."""
    known = read_certificates(store.attempts(TASK))
    first, second = (_planned(case) for case in cases)
    reasons = different_work(first, second, known)
    if reasons and not force:
        raise Refused(reasons)
    with store.hold(plan := duel_of(cases, protocol)):
        store.tidy(plan)
        duel = PairedComparison(cases, protocol, store, watch or NullWatch(), plan=plan)
        duel.remember()
        while wants_more_pairs(duel.pairs):
            duel.next_pair()
    reasons = reasons or different_work(
        *duel.pairs[-1], known
    )  # versions and devices are known only now
    if reasons and not force:
        raise Refused(reasons)
    comparison = with_certificate_remark(compare_pairs(duel.pairs), *duel.pairs[-1], known)
    if reasons:
        comparison = replace(
            comparison, remarks=(*comparison.remarks, f"force ({force}): {'; '.join(reasons)}")
        )
    return Compared(comparison, tuple(duel.pairs))


def duel_of(cases: tuple[Case, Case], protocol: Protocol) -> str:
    """A plan of its own: pairs are not measured as cases by themselves are, and B against A is not A against B."""
    words = ["pairs", plan_of(cases, protocol), *(case.key for case in cases)]
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]


def _planned(case: Case) -> Attempt:
    """What an attempt would say of its work, before there is one."""
    threads = case.threads or len(os.sched_getaffinity(0))
    network = workloads.load(case.workload).describe(case)
    nowhere: dict[str, Any] = {"machine": {}, "software": {}, "environment": {}, "started": ""}
    nothing: dict[str, Any] = {
        "id": "",
        "session": "",
        "plan": "",
        "process": 0,
        "protocol": Protocol(),
    }
    return Attempt(case=replace(case, threads=threads), network=network, **nothing, **nowhere)


@dataclass
class PairedComparison:
    cases: tuple[Case, Case]
    protocol: Protocol
    store: FolderStore
    watch: Watch
    plan: str
    session: str = field(default_factory=uuid7)
    executor: Executor = field(default_factory=lambda: local.LocalExecutor())
    pairs: list[Pair] = field(default_factory=list)
    together: bool = True  # False: both at once do not fit in memory
    tried: int = 0
    failures: list[Cause] = field(default_factory=list)

    def remember(self) -> None:
        """Goes on with the newest session of this plan, unless that one has its verdict."""
        session = newest(self.store, self.plan)
        known = [attempt for attempt in self.store.attempts() if attempt.session == session]
        pairs = whole_pairs(known)
        if session is not None and wants_more_pairs(pairs):
            self.session, self.pairs = session, pairs
            self.tried = max(attempt.process for attempt in known) // 2 + 1

    @cached_property
    def rng(self) -> random.Random:
        """Other throws for the pairs that follow than for those before an interruption."""
        return random.Random(f"{self.session} {self.tried}")

    def next_pair(self) -> None:
        """Adds one, or takes note of why not."""
        jobs = self._jobs()
        attempts = self._in_turns(jobs) if self.together else self._one_by_one(jobs)
        for attempt in attempts:
            self.watch.finished(attempt)
        self.tried += 1
        failed = [
            attempt
            for attempt in attempts
            if attempt.failure and attempt.failure.reason != NO_PARTNER
        ]
        if failed:
            self._note(failed[0], both_started=len(attempts) == 2)
        else:
            self.pairs.append((attempts[0], attempts[1]))

    def _jobs(self) -> list[Job]:
        """Partners carry the same word; A has even numbers, so that a case can be compared with itself."""
        word = uuid7()
        same: dict[str, Any] = {
            "session": self.session,
            "plan": self.plan,
            "protocol": self.protocol,
            "pair": word,
        }
        return [
            Job(id=uuid7(), process=2 * self.tried + side, case=case, **same)
            for side, case in enumerate(self.cases)
        ]

    def _in_turns(self, jobs: list[Job]) -> list[Attempt]:
        residents: list[Resident] = []
        order = self.rng.sample(jobs, 2)
        try:
            for job in order:
                self._tell(job)
                residents.append(self.executor.resident(job, self.store))
                if not residents[-1].alive:
                    break
            whole = len(residents) == 2 and self._take_turns(residents)
            attempts = [
                one.stop() if whole or not one.alive else one.cancel(NO_PARTNER)
                for one in residents
            ]
        except BaseException:
            for resident in residents:
                resident.cancel("Interrupted.")
            raise
        return sorted(attempts, key=lambda attempt: attempt.process)

    def _take_turns(self, residents: list[Resident]) -> bool:
        """A coin decides who goes first in each pair of blocks. False: one of them is gone."""
        for _ in range(block_pairs(self.pairs, self.protocol)):
            if not all(
                resident.alive and resident.turn() for resident in self.rng.sample(residents, 2)
            ):
                return False
        return True

    def _one_by_one(self, jobs: list[Job]) -> list[Attempt]:
        """Fresh processes A B B A: what drifts evenly is in both."""
        attempts: list[Attempt] = []
        for job in jobs if self.tried % 2 else reversed(jobs):
            self._tell(job)
            attempts.append(self.executor.run(job, self.store))
            if attempts[-1].failure:
                break
        return sorted(attempts, key=lambda attempt: attempt.process)

    def _note(self, attempt: Attempt, *, both_started: bool) -> None:
        assert attempt.failure is not None
        if self.together and both_started and attempt.failure.cause == Cause.OUT_OF_MEMORY:
            self.together = False
            return
        self.failures.append(attempt.failure.cause)
        if gives_up(self.failures):
            why = f"{attempt.failure.cause}: {attempt.failure.reason}"
            raise SteptimeError(
                f"{attempt.case.label} could not be measured, so nothing is compared ({why})"
            )

    def _tell(self, job: Job) -> None:
        looks = [look for look in self.protocol.pair_looks if look > len(self.pairs)]
        self.watch.started(job, job.process, 2 * (self.tried + looks[0] - len(self.pairs)))


def whole_pairs(attempts: Sequence[Attempt]) -> list[Pair]:
    """A and B, where both were measured, in the order in which they ran."""
    sides: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.process):
        if attempt.measurement is not None:
            sides.setdefault(attempt.pair, []).append(attempt)
    return [(pair[0], pair[1]) for pair in sides.values() if len(pair) == 2]
