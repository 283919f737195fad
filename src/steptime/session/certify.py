"""Certificates: the reference first, in a process of its own, then every candidate against it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steptime import shelf, workloads
from steptime.analysis.certificates import TASK, Certificate, certificate
from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import SETTLED, Attempt
from steptime.session.rounds import plan_of
from steptime.session.watch import Nobody, Watch
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

REFERENCE = "numpy"
SETTINGS: dict[str, Any] = {
    "framework": REFERENCE, "precision": "fp64", "mode": "eager", "device": "cpu", "layout": "nchw",
}  # fmt: skip
PASSES = 22  # through the network for one piece of evidence: outputs, gradients, 20 steps
FLOPS_PER_SECOND, SECONDS_PER_WEIGHT = 10e9, 60e-9  # of the reference on two slow cores
LARGE_FLOPS = 3e11  # of one sample: then one sample has to do
DRAWS = ((3.0, 5), (40.0, 3))  # a piece of evidence that takes fewer seconds is drawn so often; else once


@dataclass(frozen=True)
class Outcome:
    """One candidate and what became of it."""

    case: Case
    attempt: Attempt
    no_training: str = ""  # why the certificate covers inference alone

    @property
    def certificate(self) -> Certificate | None:
        return certificate(self.attempt)

    @property
    def passed(self) -> bool:
        return self.certificate is not None and self.certificate.passed


def certify(
    cases: Sequence[Case], store: FolderStore, *, again: bool = False, watch: Watch | None = None
) -> list[Outcome]:
    """One outcome for each case, in order. What was settled here before is not done again."""
    examination = Examination(store, watch or Nobody(), again=again, expected=len(cases))
    return [examination.outcome(sized(case)) for case in cases]


def sized(case: Case) -> Case:
    """With the certificate's own batch: small, because the reference is slow; more than one, for the statistics of a
    batch."""
    flops, seconds = _cost(replace(case, phase="training", batch_size=1))
    size = 1 if flops > LARGE_FLOPS else 4 if PASSES * seconds < DRAWS[0][0] else 2
    return replace(case, phase="training", batch_size=size)


def draws(case: Case) -> int:
    seconds = PASSES * _cost(case)[1]
    return next((count for limit, count in DRAWS if seconds < limit), 1)


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
    executor: Any = field(default_factory=lambda: shelf.load("executors", "local").Executor())
    references: dict[tuple[str, str], Attempt] = field(default_factory=dict)
    done: int = 0

    def __post_init__(self) -> None:
        settled = [] if self.again else [one for one in self.store.attempts(TASK) if _settled(one)]
        self.known = {(one.plan, one.case.key): one for one in settled}

    def outcome(self, case: Case) -> Outcome:
        """In training, and where that is not to be had, in inference alone."""
        attempt = self.attempt(case)
        why = ""
        if attempt.failure is not None and attempt.failure.cause == "unsupported":
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
            self.references[key] = self.run(own, plan_for(own), {**self.options(case), "write": True})
        return self.references[key]

    def options(self, case: Case) -> dict[str, Any]:
        folder = str((self.store.path / "references").absolute())
        return {"references": folder, "reference": REFERENCE, "precision": case.precision, "draws": draws(case)}

    def run(self, case: Case, plan: str, options: dict[str, Any]) -> Attempt:
        seconds = 20 * PASSES * (1 + options["draws"]) * _cost(case)[1]  # slow machines, and hung ones
        protocol = replace(Protocol(), limit_seconds=max(Protocol().limit_seconds, seconds))
        job = Job(
            id=uuid7(), session=self.session, plan=plan, process=0, case=case, protocol=protocol, task=TASK,
            options=options,
        )  # fmt: skip
        self.watch.started(job, self.done, self.expected)
        attempt: Attempt = self.executor.run(job, self.store)
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
    source = shelf.source(shelf_name, name)
    if source is None:
        return []
    return sorted(source.parent.rglob("*.py")) if source.name == "__init__.py" else [source]


def _settled(attempt: Attempt) -> bool:
    return "certificate" in attempt.findings or (attempt.failure is not None and attempt.failure.cause in SETTLED)
