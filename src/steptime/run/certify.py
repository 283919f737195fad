"""Certify lowerings: the reference runs first, in its own process, then each candidate."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from steptime import plugins, workloads
from steptime.analysis.certificates import TASK, Certificate, read_certificate
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.executor import Executor
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.core.retry import is_final
from steptime.run import local
from steptime.run.session import plan_hash
from steptime.run.watch import NullWatch, Watch
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

REFERENCE = "numpy"
# How fast the reference is on slow cores.
FLOPS_PER_SECOND = 20e9
SECONDS_PER_WEIGHT = 25e-9
LARGE_FLOPS = 5e10  # of one sample: above, a batch has only one
SLOW_FACTOR = 20  # a process that takes this many times its estimate hangs
# What is computed if a step of the reference takes fewer seconds than this (METHOD.md).
EFFORTS: tuple[tuple[float, dict[str, int]], ...] = (
    (0.15, {"steps": 20, "draws": 5, "trajectories": 5}),
    (1.0, {"steps": 20, "draws": 3, "trajectories": 3}),
    (5.0, {"steps": 20, "draws": 3, "trajectories": 1}),
    (inf, {"steps": 3, "draws": 1, "trajectories": 1}),
)


@dataclass(frozen=True)
class Outcome:
    """One candidate and what became of it."""

    case: Case
    attempt: Attempt
    no_training: str = ""  # why the certificate covers inference alone

    @property
    def certificate(self) -> Certificate | None:
        return read_certificate(self.attempt)

    @property
    def passed(self) -> bool:
        return self.certificate is not None and self.certificate.passed


def certify(
    cases: Sequence[Case],
    store: FolderStore,
    *,
    again: bool = False,
    watch: Watch | None = None,
    executor: Executor | None = None,
) -> list[Outcome]:
    """One outcome for each case, in order. What is settled already is not done again."""
    examination = Examination(
        store=store,
        watch=watch or NullWatch(),
        executor=executor or local.LocalExecutor(),
        expected=len(cases),
    )
    if not again:
        examination.load()
    return [examination.outcome(certified_case(case)) for case in cases]


def settled_outcomes(store: FolderStore) -> list[Outcome]:
    """The newest settled outcome of each candidate in the store. Runs nothing."""
    outcomes: dict[str, Outcome] = {}
    for attempt in store.attempts(TASK):
        if not _is_settled(attempt):
            continue
        case = replace(attempt.case, phase="training")
        no_training = ""
        previous = outcomes.get(case.key)
        if attempt.case.phase == "inference" and previous and previous.attempt.failure:
            no_training = previous.attempt.failure.reason
        outcomes[case.key] = Outcome(case, attempt, no_training)
    return list(outcomes.values())


def certified_case(case: Case) -> Case:
    """The case with the batch of a certificate.

    It is small, because the reference is slow, but larger than one for batch statistics."""
    cost = _reference_cost(replace(case, phase="training", batch_size=1))
    size = 2
    if cost.flops > LARGE_FLOPS:
        size = 1
    elif cost.seconds < EFFORTS[0][0]:
        size = 4
    return replace(case, phase="training", batch_size=size)


def effort(case: Case) -> dict[str, int]:
    """How thorough the comparison is, by the cost of a training step.

    Also for inference: both are compared with the same reference."""
    seconds = _reference_cost(replace(case, phase="training")).seconds
    return next(numbers for limit, numbers in EFFORTS if seconds < limit)


def rounding_name(case: Case) -> str:
    """The reference's name for what is rounded, and how often."""
    if case.precision == "fp32" and case.device != "cpu":
        # GPU libraries use Winograd's algorithm for fp32 convolutions.
        return "fp32+winograd"
    return case.precision


class ReferenceCost(NamedTuple):
    """Of one step."""

    flops: float
    seconds: float


def _reference_cost(case: Case) -> ReferenceCost:
    work = workloads.load(case.workload).describe(case)
    flops: float = work["flops_per_step"]
    seconds = flops / FLOPS_PER_SECOND + work["stored_parameters"] * SECONDS_PER_WEIGHT
    return ReferenceCost(flops, seconds)


def _reference_case(case: Case) -> Case:
    return replace(
        case,
        phase="training",
        framework=REFERENCE,
        precision="fp64",
        mode="eager",
        device="cpu",
        layout="nchw",
    )


@dataclass
class Examination:
    store: FolderStore
    watch: Watch
    executor: Executor
    expected: int
    session: str = field(default_factory=uuid7)
    references: dict[tuple[str, str], Attempt] = field(default_factory=dict)
    settled: dict[tuple[str, str], Attempt] = field(default_factory=dict)
    done: int = 0

    def load(self) -> None:
        """Read what is settled already."""
        for attempt in self.store.attempts(TASK):
            if _is_settled(attempt):
                self.settled[attempt.plan, attempt.case.key] = attempt

    def outcome(self, case: Case) -> Outcome:
        """Certify training, or inference alone if training is unsupported."""
        attempt = self.attempt(case)
        no_training = ""
        if attempt.failure is not None and attempt.failure.cause == Cause.UNSUPPORTED:
            no_training = attempt.failure.reason
            attempt = self.attempt(replace(case, phase="inference"))
        self.done += 1
        return Outcome(case, attempt, no_training)

    def attempt(self, case: Case) -> Attempt:
        plan = lowering_hash(case)
        if (plan, case.key) in self.settled:
            return self.settled[plan, case.key]
        reference = self.reference(case)
        if reference.failure is not None:
            return reference
        return self.run(case, plan, self.options(case))

    def reference(self, case: Case) -> Attempt:
        """Run the reference once for a network and precision.

        The worker itself finds out what is on the disk already."""
        key = (case.workload, case.precision)
        if key not in self.references:
            reference = _reference_case(case)
            options = self.options(case) | {"write": True}
            self.references[key] = self.run(reference, lowering_hash(reference), options)
        return self.references[key]

    def options(self, case: Case) -> dict[str, Any]:
        return {
            "references": str((self.store.path / "references").absolute()),
            "reference": REFERENCE,
            "precision": rounding_name(case),
            **effort(case),
        }

    def run(self, case: Case, plan: str, options: dict[str, Any]) -> Attempt:
        passes = (2 + options["steps"]) * (1 + options["draws"])
        protocol = Protocol()
        seconds = SLOW_FACTOR * passes * _reference_cost(case).seconds
        protocol = replace(protocol, limit_seconds=max(protocol.limit_seconds, seconds))
        job = Job(
            id=uuid7(),
            session=self.session,
            plan=plan,
            process=0,
            case=case,
            protocol=protocol,
            task=TASK,
            options=options,
        )
        self.watch.on_start(job, self.done, self.expected)
        attempt = self.executor.run(job, self.store)
        self.watch.on_finish(attempt)
        return attempt


def lowering_hash(case: Case) -> str:
    """Changes with the network, the place, the lowering, the reference and the comparison.

    A certificate of another hash does not hold for this case."""
    digest = hashlib.sha256(plan_hash([case], Protocol()).encode())
    sources = [
        plugins.source("frameworks", case.framework),
        plugins.source("frameworks", REFERENCE),
        plugins.source("tasks", TASK),
    ]
    for source in sources:
        for file in _files(source):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _files(source: Path | None) -> list[Path]:
    """All files of a plugin: it is one module or a folder."""
    if source is None:
        return []
    if source.name == "__init__.py":
        return sorted(source.parent.rglob("*.py"))
    return [source]


def _is_settled(attempt: Attempt) -> bool:
    if "certificate" in attempt.findings:
        return True
    return attempt.failure is not None and is_final(attempt.failure.cause)
