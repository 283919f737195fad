"""All that a framework needs to make a step: the graph, the weights to start from, a batch, an optimiser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steptime.graph.graph import Graph
from steptime.graph.optimizer import Optimizer


@dataclass(frozen=True)
class Work:
    """The loss is the mean over batch and positions of −log softmax(output)[target]."""

    graph: Graph
    weights: dict[str, Any]  # canonical name -> float32 array
    batch: dict[
        str, Any
    ]  # "input" (float32, or int64 for tokens) and "target" (int64), NumPy, batch first
    optimizer: Optimizer
    calibration: tuple[
        dict[str, Any], ...
    ] = ()  # batches that show a quantiser the range of values
