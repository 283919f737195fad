"""A framework that computes with the errors of fp32 and, if a test says so, something wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Optimizer, Tensor, Work, adam
from steptime.tasks.certify import examine, write_reference
from steptime.tasks.certify.evidence import Lowering
from steptime.tasks.certify.probes import probing_batch, shifted_weights
from steptime.tasks.certify.reference import ReferenceFiles
from steptime.tasks.certify.studies import WHOLE, Effort, Study

EXACT = Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4)
OPTIONS = {"reference": "numpy", "precision": "fp32"}
Items = dict[str, dict[str, Any]]


def build(network: Callable[[Net], Tensor], optimizer: Optimizer | None = None) -> Work:
    net = Net("tiny")
    graph = net.graph(network(net))
    return Work(
        graph, shifted_weights(graph, 0), probing_batch(graph, 4, 0), optimizer or adam(1e-3)
    )


def complete_study(work: Work) -> Study:
    effort = Effort(20, 3, 3)
    second = probing_batch(work.graph, 4, 1)
    other = shifted_weights(work.graph, 1)
    return Study(WHOLE, work, second, other, effort, is_complete=True, has_gradients=True)


@dataclass(frozen=True)
class Candidate:
    """The rounded reference; `change` is its mistake."""

    change: Callable[[Work], Work] = lambda work: work

    def lower(self, work: Work, case: Case) -> Any:
        exact = replace(case, precision="fp64")
        return reference.lower_rounded(self.change(work), exact, precision="fp32", draw=99)


class Bench:
    """One work with its reference files."""

    def __init__(self, folder: Path, work: Work) -> None:
        self.work = work
        self.study = complete_study(work)
        self.files = ReferenceFiles(folder, self.study, "numpy", 0)
        write_reference(Lowering(reference, EXACT), self.files, "fp32")

    def items(self, candidate: Any = None, **settings: Any) -> Items:
        case = replace(EXACT, precision="fp32", **settings)
        entries = examine(Lowering(candidate or Candidate(), case), self.files, OPTIONS)
        return {item["item"]: item for item in entries}


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(network: Callable[[Net], Tensor], optimizer: Optimizer | None = None) -> Bench:
        return Bench(tmp_path / "references", build(network, optimizer))

    return make


@pytest.fixture
def mistaking() -> Callable[[Callable[[Work], Work]], Candidate]:
    return Candidate
