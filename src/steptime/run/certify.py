"""Certificates: the reference first, in a process of its own, then every candidate against it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from steptime import plugins, workloads
from steptime.analysis.certificates import TASK, Certificate, read_certificate
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.executor import Executor
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.run import local
from steptime.run.session import plan_of
from steptime.run.watch import NullWatch, Watch
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

REFERENCE = "numpy"
SETTINGS: dict[str, Any] = {
    "framework": REFERENCE, "precision": "fp64", "mode": "eager", "device": "cpu", "layout": "nchw",
}  # fmt: skip
FLOPS_PER_SECOND, SECONDS_PER_WEIGHT = 20e9, 25e-9  # of the reference on slow cores
LARGE_FLOPS = 5e10  # of one sample: then one sample has to do
EFFORTS: tuple[tuple[float, dict[str, int]], ...] = (
    (0.15, {"steps": 20, "draws": 5, "trajectories": 5}),
    (1.0, {"steps": 20, "draws": 3, "trajectories": 3}),
    (5.0, {"steps": 20, "draws": 3, "trajectories": 1}),
    (inf, {"steps": 3, "draws": 1, "trajectories": 1}),
)
"""What is computed, where the reference's step takes fewer seconds than this (METHOD.md, certificates)."""


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
    cases: Sequence[Case], store: FolderStore, *, again: bool = False, watch: Watch | None = None
) -> list[Outcome]:
    """One outcome for each case, in order. What was settled here before is not done again."""
    examination = Examination(store, watch or NullWatch(), again=again, expected=len(cases))
    return [examination.outcome(sized(case)) for case in cases]


def proved(store: FolderStore) -> list[Outcome]:
    """What is settled here, without proving anything: the newest outcome of each candidate."""
    found: dict[str, Outcome] = {}
    for attempt in filter(_settled, store.attempts(TASK)):
        case = replace(attempt.case, phase="training")
        before = found[case.key].attempt.failure if case.key in found else None
        why = before.reason if before and attempt.case.phase == "inference" else ""
        found[case.key] = Outcome(case, attempt, why)
    return list(found.values())


def sized(case: Case) -> Case:
    """With the certificate's own batch: small, because the reference is slow; more than one, for the statistics of a
    batch."""
    flops, seconds = _cost(replace(case, phase="training", batch_size=1))
    size = 1 if flops > LARGE_FLOPS else 4 if seconds < EFFORTS[0][0] else 2
    return replace(case, phase="training", batch_size=size)


def effort(case: Case) -> dict[str, int]:
    """By what a step of training costs, whatever is compared: the reference is one for all."""
    seconds = _cost(replace(case, phase="training"))[1]
    return next(numbers for limit, numbers in EFFORTS if seconds < limit)


def rounding(case: Case) -> str:
    """The reference's word for what may be rounded, and how often. GPU libraries take Winograd's way in fp32."""
    return "fp32+winograd" if case.precision == "fp32" and case.device != "cpu" else case.precision


def _cost(case: Case) -> tuple[float, float]:
    """FLOPs of a step, and the seconds that the reference takes for it."""
    work = workloads.load(case.workload).describe(case)
    flops: float = work["flops_per_step"]
    return flops, flops / FLOPS_PER_SECOND + work["stored_parameters"] * SECONDS_PER_WEIGHT


@dataclass
class Examination:
    store: FolderStore
    watch: Watch
    again: bool
    expected: int
    session: str = field(default_factory=uuid7)
    executor: Executor = field(default_factory=lambda: local.LocalExecutor())
    references: dict[tuple[str, str], Attempt] = field(default_factory=dict)
    done: int = 0

    def __post_init__(self) -> None:
        settled = [] if self.again else [one for one in self.store.attempts(TASK) if _settled(one)]
        self.known = {(one.plan, one.case.key): one for one in settled}

    def outcome(self, case: Case) -> Outcome:
        """In training, and where that is not to be had, in inference alone."""
        attempt = self.attempt(case)
        why = ""
        if attempt.failure is not None and attempt.failure.cause == Cause.UNSUPPORTED:
            why = attempt.failure.reason
            attempt = self.attempt(replace(case, phase="inference"))
        self.done += 1
        return Outcome(case, attempt, why)

    def attempt(self, case: Case) -> Attempt:
        plan = plan_for(case)
        if (plan, case.key) in self.known:
            return self.known[plan, case.key]
        reference = self.reference(case)
        if reference.failure is not None:
            return reference
        return self.run(case, plan, self.options(case))

    def reference(self, case: Case) -> Attempt:
        """Once for a network and a precision. The worker itself knows what is there already."""
        key = (case.workload, case.precision)
        if key not in self.references:
            own = replace(case, phase="training", **SETTINGS)
            self.references[key] = self.run(
                own, plan_for(own), {**self.options(case), "write": True}
            )
        return self.references[key]

    def options(self, case: Case) -> dict[str, Any]:
        folder = str((self.store.path / "references").absolute())
        return {
            "references": folder,
            "reference": REFERENCE,
            "precision": rounding(case),
            **effort(case),
        }

    def run(self, case: Case, plan: str, options: dict[str, Any]) -> Attempt:
        passes = (2 + options["steps"]) * (1 + options["draws"])
        seconds = 20 * passes * _cost(case)[1]  # slow machines, and hung ones
        protocol = replace(Protocol(), limit_seconds=max(Protocol().limit_seconds, seconds))
        job = Job(
            id=uuid7(), session=self.session, plan=plan, process=0, case=case, protocol=protocol, task=TASK,
            options=options,
        )  # fmt: skip
        self.watch.started(job, self.done, self.expected)
        attempt = self.executor.run(job, self.store)
        self.watch.finished(attempt)
        return attempt


def plan_for(case: Case) -> str:
    """Another network, place, lowering, reference or way to compare is another plan: its certificate is not this."""
    digest = hashlib.sha256(plan_of([case], Protocol()).encode())
    for plug_in in (("frameworks", case.framework), ("frameworks", REFERENCE), ("tasks", TASK)):
        for file in _files(*plug_in):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _files(shelf_name: str, name: str) -> list[Path]:
    source = plugins.source(shelf_name, name)
    if source is None:
        return []
    return sorted(source.parent.rglob("*.py")) if source.name == "__init__.py" else [source]


def _settled(attempt: Attempt) -> bool:
    return "certificate" in attempt.findings or (
        attempt.failure is not None and attempt.failure.cause.is_final
    )
