"""Certify lowerings: the reference runs first, in its own process, then each candidate."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from steptime import plugins, workloads
from steptime.analysis.certificates import TASK, Certificate, read_certificate
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import UnreadableFile
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
SEMANTICS = "fp64"
# How fast the reference is on a slow core.
FLOPS_PER_SECOND = 20e9
LARGE_FLOPS = 5e10  # of a training step with one sample: above, a batch has only one
SMALL_FLOPS = 1e9
PASSES = 20  # of a process, forward and backward
SLOW_FACTOR = 20  # a process that takes this many times its estimate hangs


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
        if previous and previous.certificate and attempt.case.phase == "inference":
            # Inference alone says less than what there is.
            continue
        if attempt.case.phase == "inference" and previous and previous.attempt.failure:
            no_training = previous.attempt.failure.reason
        outcomes[case.key] = Outcome(case, attempt, no_training)
    return list(outcomes.values())


def certified_case(case: Case) -> Case:
    """The case with the batch of a certificate.

    It is small, because the reference is slow, but larger than one for batch statistics."""
    flops = _step_flops(replace(case, batch_size=1))
    size = 2
    if flops > LARGE_FLOPS:
        size = 1
    elif flops < SMALL_FLOPS:
        size = 4
    return replace(case, phase="training", batch_size=size)


def rounding_name(case: Case) -> str:
    """The reference's name for what is rounded, and how often."""
    if case.precision == "fp32" and case.device != "cpu":
        # GPU libraries use Winograd's algorithm and fast exponentials in fp32.
        return "fp32+fast"
    return case.precision


def _step_flops(case: Case) -> float:
    try:
        work = workloads.describe(replace(case, phase="training"))
    except UnreadableFile:
        # Nothing runs: the executor records why.
        return 0.0
    flops: float = work["flops_per_step"]
    return flops


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
    # Why a framework, mode, device and phase have no fp64: asked once.
    no_semantics: dict[tuple[str, str, str, str], str] = field(default_factory=dict)
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
        options = self.options(case)
        if case.precision != SEMANTICS:
            options["semantics"] = self.semantics(case)
        attempt = self.run(case, plan, options)
        if _is_settled(attempt):
            self.settled[plan, case.key] = attempt
        return attempt

    def semantics(self, case: Case) -> dict[str, Any]:
        """What the same lowering proves in fp64, in which rounding hides nothing."""
        exact_case = replace(case, precision=SEMANTICS)
        reason = self.no_semantics.get((case.framework, case.mode, case.device, case.phase))
        if reason is not None:
            return {"reason": reason}
        attempt = self.attempt(exact_case)
        certificate = read_certificate(attempt)
        if certificate is not None:
            return {
                "certificate": certificate.id,
                "passed": certificate.passed,
                "proves": list(certificate.proves),
            }
        assert attempt.failure is not None
        reason = attempt.failure.reason
        if attempt.failure.cause == Cause.UNSUPPORTED:
            self.no_semantics[case.framework, case.mode, case.device, case.phase] = reason
        return {"reason": reason}

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
        }

    def run(self, case: Case, plan: str, options: dict[str, Any]) -> Attempt:
        protocol = Protocol()
        seconds = SLOW_FACTOR * PASSES * _step_flops(case) / FLOPS_PER_SECOND
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
    digest.update(plugins.program_digest(REFERENCE).encode())
    for file in plugins.source_files(plugins.source("tasks", TASK)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _is_settled(attempt: Attempt) -> bool:
    if "certificate" in attempt.findings:
        return True
    return attempt.failure is not None and is_final(attempt.failure.cause)
