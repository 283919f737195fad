"""All that a framework needs to make a step: the graph, initial weights, a batch, an optimiser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steptime.graph.graph import Graph
from steptime.graph.optimizer import Optimizer


@dataclass(frozen=True)
class Work:
    """The loss is the mean over batch and positions of −log softmax(output)[target]."""

    graph: Graph
    # By canonical name: float32 arrays.
    weights: dict[str, Any]
    # NumPy arrays, batch first: "input" (float32, or int64 for tokens) and "target" (int64).
    batch: dict[str, Any]
    optimizer: Optimizer
    # Batches that show a quantiser the range of values.
    calibration: tuple[dict[str, Any], ...] = ()
