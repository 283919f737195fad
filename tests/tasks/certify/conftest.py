"""A framework that computes with the errors of fp32 and, if a test says so, something wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.data.synthetic import synthetic_batch
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Optimizer, Tensor, Work, adam
from steptime.graph.weights import initial_weights
from steptime.tasks.certify import examine, write_reference
from steptime.tasks.certify.evidence import Lowering
from steptime.tasks.certify.reference import Effort, ReferenceFiles

EXACT = Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4)
OPTIONS = {"reference": "numpy", "precision": "fp32"}
Items = dict[str, dict[str, Any]]


def build(network: Callable[[Net], Tensor], optimizer: Optimizer | None = None) -> Work:
    net = Net("tiny")
    graph = net.graph(network(net))
    return Work(
        graph,
        dict(initial_weights(graph, 0)),
        synthetic_batch(graph, 4, 0),
        optimizer or adam(1e-3),
    )


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
        self.work, self.files = work, ReferenceFiles(folder, work, "numpy", Effort())
        write_reference(Lowering(reference, EXACT), work, self.files, "fp32")

    def items(self, candidate: Any = None, **settings: Any) -> Items:
        case = replace(EXACT, precision="fp32", **settings)
        entries = examine(Lowering(candidate or Candidate(), case), self.work, self.files, OPTIONS)
        return {item["item"]: item for item in entries}


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(network: Callable[[Net], Tensor], optimizer: Optimizer | None = None) -> Bench:
        return Bench(tmp_path / "references", build(network, optimizer))

    return make


@pytest.fixture
def mistaking() -> Callable[[Callable[[Work], Work]], Candidate]:
    return Candidate
