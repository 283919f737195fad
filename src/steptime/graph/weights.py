"""Initial weights from a seed, the same for every framework."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steptime.graph.graph import Graph
from steptime.graph.kind import Weight


def initial_weights(graph: Graph, seed: int) -> dict[str, NDArray[np.float32]]:
    """Each weight has its own stream, so adding a layer leaves the others' values alone."""
    return {
        name: _draw(weight, np.random.default_rng([seed, place])).astype(np.float32)
        for place, (name, weight) in enumerate(graph.weights.items())
    }


def _draw(weight: Weight, random: np.random.Generator) -> NDArray[np.float64]:
    law, scale = weight.initial.law, weight.initial.scale
    if law == "constant":
        return np.full(weight.shape, scale)
    if law == "uniform":
        return random.uniform(-scale, scale, weight.shape)
    values = random.standard_normal(weight.shape)
    while (outside := np.abs(values) > 2).any():
        values[outside] = random.standard_normal(int(outside.sum()))
    return scale * values
