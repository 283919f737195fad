"""Compare two cases: pairs of warm workers take turns until a verdict or the last look."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from steptime import plugins, workloads
from steptime.analysis.certificates import TASK, read_certificates
from steptime.analysis.compare import (
    Comparison,
    Pair,
    block_pairs,
    compare_pairs,
    different_work,
    refusal_reasons,
    wants_more_pairs,
    with_certificate_remark,
)
from steptime.core.accuracy import known_findings
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.executor import Executor, Resident
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.core.retry import gives_up
from steptime.run import local
from steptime.run.session import newest_session, plan_hash
from steptime.run.watch import NullWatch, Watch
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

NO_PARTNER = "Its partner in this pair failed."


class Refused(SteptimeError):
    """The two cases do not do the same work."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(
            f"Not compared: {'; '.join(reasons)}. "
            'To compare all the same, say why with --force "…".'
        )
        self.reasons = list(reasons)


@dataclass(frozen=True)
class Compared:
    comparison: Comparison
    pairs: tuple[Pair, ...]

    @property
    def sides(self) -> tuple[list[Attempt], list[Attempt]]:
        """All processes of A, and all of B."""
        return [a for a, _ in self.pairs], [b for _, b in self.pairs]


def compare(
    cases: tuple[Case, Case],
    protocol: Protocol,
    store: FolderStore,
    *,
    force: str = "",
    watch: Watch | None = None,
    executor: Executor | None = None,
) -> Compared:
    """B, the second case, against A. Continues an interrupted comparison of the same cases.

    Raises Refused, or SteptimeError if one of the two cannot be measured."""
    certificates = read_certificates(store.attempts(TASK))
    reasons = different_work(_planned_attempt(cases[0]), _planned_attempt(cases[1]), certificates)
    if reasons and not force:
        raise Refused(reasons)
    plan = comparison_hash(cases, protocol)
    with store.hold(plan):
        store.tidy(plan)
        comparison = PairedComparison(
            cases=cases,
            protocol=protocol,
            store=store,
            watch=watch or NullWatch(),
            executor=executor or local.LocalExecutor(),
            plan=plan,
        )
        comparison.load()
        while wants_more_pairs(comparison.pairs):
            comparison.measure_pair()
    compared = Compared(compare_pairs(comparison.pairs), tuple(comparison.pairs))
    # Versions, devices and flags are only known after a measurement.
    reasons = reasons or refusal_reasons(*compared.sides, certificates)
    if reasons and not force:
        raise Refused(reasons)
    result = with_certificate_remark(compared.comparison, *compared.pairs[-1], certificates)
    return replace(compared, comparison=with_force_remark(result, force, reasons))


def with_force_remark(comparison: Comparison, force: str, reasons: Sequence[str]) -> Comparison:
    """Adds why, and in spite of what, a comparison was forced."""
    if not reasons:
        return comparison
    remark = f"force ({force}): {'; '.join(reasons)}"
    return replace(comparison, remarks=(*comparison.remarks, remark))


def comparison_hash(cases: tuple[Case, Case], protocol: Protocol) -> str:
    """Differs from the hash of a session, and for B against A from that of A against B."""
    texts = ["pairs", plan_hash(cases, protocol), cases[0].key, cases[1].key]
    return hashlib.sha256(" ".join(texts).encode()).hexdigest()[:16]


def _planned_attempt(case: Case) -> Attempt:
    """What an attempt would say about its work, before there is one."""
    threads = case.threads or len(os.sched_getaffinity(0))
    return Attempt(
        id="",
        session="",
        plan="",
        process=0,
        case=replace(case, threads=threads),
        protocol=Protocol(),
        started="",
        machine={},
        software={},
        network=workloads.describe(case),
        environment={},
        program=plugins.program_digest(case.framework),
    )


@dataclass
class PairedComparison:
    cases: tuple[Case, Case]
    protocol: Protocol
    store: FolderStore
    watch: Watch
    executor: Executor
    plan: str
    session: str = field(default_factory=uuid7)
    pairs: list[Pair] = field(default_factory=list)
    side_by_side: bool = True  # False: both at once do not fit in memory
    pairs_tried: int = 0
    failures: list[Cause] = field(default_factory=list)

    def load(self) -> None:
        """Continue the newest session of this plan, unless it has its verdict."""
        newest = newest_session(self.store, self.plan)
        if newest is None:
            return
        session = newest.session
        attempts = [attempt for attempt in self.store.attempts() if attempt.session == session]
        pairs = complete_pairs(attempts)
        if wants_more_pairs(pairs):
            self.session = session
            self.pairs = pairs
            self.pairs_tried = max(attempt.process for attempt in attempts) // 2 + 1

    @cached_property
    def rng(self) -> random.Random:
        """After an interruption, other random numbers than before it."""
        return random.Random(f"{self.session} {self.pairs_tried}")

    def measure_pair(self) -> None:
        """Add one pair, or note why it failed."""
        jobs = self._jobs()
        if self.side_by_side:
            attempts = self._measure_side_by_side(jobs)
        else:
            attempts = self._measure_one_by_one(jobs)
        attempts.sort(key=lambda attempt: attempt.process)
        for attempt in attempts:
            self.watch.on_finish(attempt)
        self.pairs_tried += 1
        for attempt in attempts:
            # A partner that was cancelled is not the one that failed.
            if attempt.failure and attempt.failure.reason != NO_PARTNER:
                self._note_failure(attempt, both_started=len(attempts) == 2)
                return
        self.pairs.append((attempts[0], attempts[1]))

    def _jobs(self) -> list[Job]:
        """One for each case. A has even numbers, so that a case can be compared with itself."""
        pair = uuid7()
        jobs = []
        for side, case in enumerate(self.cases):
            job = Job(
                id=uuid7(),
                session=self.session,
                plan=self.plan,
                process=2 * self.pairs_tried + side,
                case=case,
                protocol=self.protocol,
                pair=pair,
                options=known_findings(attempts[side] for attempts in self.pairs),
            )
            jobs.append(job)
        return jobs

    def _measure_side_by_side(self, jobs: list[Job]) -> list[Attempt]:
        residents: list[Resident] = []
        try:
            for job in self.rng.sample(jobs, 2):
                self._announce(job)
                residents.append(self.executor.resident(job, self.store))
                if not residents[-1].alive:
                    break
            complete = len(residents) == 2 and self._take_turns(residents)
            return [_end(resident, complete=complete) for resident in residents]
        except BaseException:
            for resident in residents:
                resident.cancel("Interrupted.")
            raise

    def _take_turns(self, residents: list[Resident]) -> bool:
        """In each pair of blocks, a random worker is first. False if one is gone."""
        for _ in range(block_pairs(self.pairs, self.protocol)):
            for resident in self.rng.sample(residents, 2):
                if not resident.alive or not resident.turn():
                    return False
        return True

    def _measure_one_by_one(self, jobs: list[Job]) -> list[Attempt]:
        """Fresh processes one after the other. A coin decides the order in each pair, so that
        whatever changes with time is as likely to favour either side."""
        attempts: list[Attempt] = []
        for job in self.rng.sample(jobs, 2):
            self._announce(job)
            attempts.append(self.executor.run(job, self.store))
            if attempts[-1].failure:
                break
        return attempts

    def _note_failure(self, attempt: Attempt, *, both_started: bool) -> None:
        """Raise if this ends the comparison."""
        failure = attempt.failure
        assert failure is not None
        if self.side_by_side and both_started and failure.cause == Cause.OUT_OF_MEMORY:
            # Each may still fit alone.
            self.side_by_side = False
            return
        self.failures.append(failure.cause)
        if gives_up(self.failures):
            raise SteptimeError(
                f"{attempt.case.label} could not be measured, so nothing is compared "
                f"({failure.cause}: {failure.reason})"
            )

    def _announce(self, job: Job) -> None:
        looks = [look for look in self.protocol.pair_looks if look > len(self.pairs)]
        pairs_missing = looks[0] - len(self.pairs)
        self.watch.on_start(job, job.process, 2 * (self.pairs_tried + pairs_missing))


def _end(resident: Resident, *, complete: bool) -> Attempt:
    """Stop a worker that has its result or its own failure; cancel one that lost its partner."""
    if complete or not resident.alive:
        return resident.stop()
    return resident.cancel(NO_PARTNER)


def complete_pairs(attempts: Sequence[Attempt]) -> list[Pair]:
    """A and B, if both were measured, in the order in which they ran."""
    sides: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.process):
        if attempt.measurement is not None:
            sides.setdefault(attempt.pair, []).append(attempt)
    return [(pair[0], pair[1]) for pair in sides.values() if len(pair) == 2]
