"""A program for a tiny network, which each test builds for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.data.synthetic import synthetic_batch
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Optimizer, Tensor, Work, sgd
from steptime.graph.weights import initial_weights


@pytest.fixture
def lower() -> Callable[..., Any]:
    """A program for a network written in the test itself."""

    def make(
        write: Callable[[Net], Tensor], *, optimizer: Optimizer | None = None, **settings: Any
    ) -> Any:
        case = Case(
            workload="tiny", framework="numpy", precision="fp64", **{"batch_size": 3, **settings}
        )
        net = Net("tiny")
        graph = net.graph(write(net))
        batch = synthetic_batch(graph, case.batch_size, case.seed)
        return reference.lower(
            Work(graph, dict(initial_weights(graph, 0)), batch, optimizer or sgd(0.1)), case
        )

    return make
