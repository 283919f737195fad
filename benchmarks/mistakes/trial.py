"""Certify in this process, with a mistake or without one, and say which item saw it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.mistakes.mistake import Mistake

from steptime import plugins, workloads
from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.tasks.certify import examine, write_reference
from steptime.tasks.certify.evidence import Lowering
from steptime.tasks.certify.reference import ReferenceFiles
from steptime.tasks.certify.studies import Study, make_studies, step_seconds

BATCH_SIZE = 4
# Frameworks that prove semantics in fp64.
HAVE_FP64 = ("jax", "pytorch", "tensorflow")
# Of a step of the reference: the whole network is not tried above.
SLOW_SECONDS = 1.0
Items = list[dict[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """What the certificates say about one mistake."""

    mistake: Mistake
    precision: str = ""  # of the certificate that fails; empty: all pass
    item: str = ""
    where: str = ""
    error: float | None = None
    bound: float | None = None
    share: float | None = None  # None: infinite
    failed_items: tuple[str, ...] = ()
    calls: int = 0  # of the replaced function

    @property
    def is_caught(self) -> bool:
        return bool(self.precision)

    def to_dict(self) -> dict[str, Any]:
        mistake = self.mistake
        return {
            "name": mistake.name,
            "number": mistake.number,
            "description": mistake.description,
            "framework": mistake.framework,
            "mode": mistake.mode,
            "network": mistake.network,
            "phase": mistake.phase,
            "precision": mistake.precision,
            "certificate": self.precision,
            "item": self.item,
            "where": self.where,
            "error": self.error,
            "bound": self.bound,
            "share": self.share,
            "failed_items": self.failed_items,
            "calls": self.calls,
        }


class Certifier:
    def __init__(self, references: Path) -> None:
        self.references = references
        references.mkdir(parents=True, exist_ok=True)

    def certify(self, case: Case) -> Iterator[Items]:
        """The items of each study; the complete one comes first."""
        framework = plugins.load("frameworks", case.framework)
        if case.framework == "pytorch" and case.mode == "compiled":
            _forget_compilations()
        studies = sorted(
            _studies(case.workload, case.seed), key=lambda study: not study.is_complete
        )
        options = {"reference": "numpy", "precision": case.precision}
        for study in studies:
            size = len(study.work.batch["input"])
            if not study.is_complete and step_seconds(study.work.graph, size) > SLOW_SECONDS:
                continue
            files = ReferenceFiles(self.references, study, "numpy", case.seed)
            write_reference(Lowering(reference, _reference_case(case)), files, case.precision)
            yield examine(Lowering(framework, case), files, options)


def _forget_compilations() -> None:
    """PyTorch compiles a function eight times in a process, and then runs it without compiling."""
    import torch

    torch._dynamo.reset()


@cache
def _studies(workload: str, seed: int) -> list[Study]:
    case = _reference_case(Case(workload=workload, batch_size=BATCH_SIZE, seed=seed))
    work = workloads.load(workload).build(case)
    return make_studies(work, case)


def _reference_case(case: Case) -> Case:
    return Case(
        workload=case.workload,
        framework="numpy",
        precision="fp64",
        batch_size=BATCH_SIZE,
        threads=case.threads,
        seed=case.seed,
    )


def try_mistake(mistake: Mistake, certifier: Certifier) -> Outcome:
    """The certificate of the mistake's own precision, then that of fp64."""
    precisions = [mistake.precision]
    if mistake.framework in HAVE_FP64 and mistake.phase != "inference":
        precisions.append("fp64")
    calls = 0
    for precision in dict.fromkeys(precisions):
        case = case_for(mistake, precision)
        with mistake.made() as patcher:
            try:
                for items in certifier.certify(case):
                    failed = [item for item in items if not item["passed"]]
                    if failed:
                        return _caught(mistake, precision, failed, calls + patcher.calls)
            # A lowering that raises is not certified.
            except Exception as problem:
                return Outcome(
                    mistake,
                    precision,
                    item="stopped",
                    where=f"{type(problem).__name__}: {problem}".splitlines()[0][:80],
                    calls=calls + patcher.calls,
                )
            calls += patcher.calls
    return Outcome(mistake, calls=calls)


def _caught(mistake: Mistake, precision: str, failed: Items, calls: int) -> Outcome:
    worst = max(failed, key=_share)
    return Outcome(
        mistake,
        precision,
        item=worst["item"],
        where=worst["where"],
        error=worst["error"],
        bound=worst["bound"],
        share=worst["share"],
        failed_items=tuple(item["item"] for item in failed),
        calls=calls,
    )


def _share(item: dict[str, Any]) -> float:
    return float("inf") if item["share"] is None else float(item["share"])


def case_for(mistake: Mistake, precision: str) -> Case:
    return Case(
        workload=mistake.network,
        framework=mistake.framework,
        phase=mistake.phase,
        mode=mistake.mode,
        precision=precision,
        batch_size=BATCH_SIZE,
        layout=mistake.layout,
        threads=1,
    )
