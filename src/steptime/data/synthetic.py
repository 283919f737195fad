"""A batch from a seed: standard normal images or uniform tokens, uniform targets. The same on every framework."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.graph import Graph
from steptime.graph.ops import Input


def synthetic_batch(graph: Graph, size: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng([seed, 0x6261_7463])  # apart from the weights' streams
    kind = graph.input.op
    assert isinstance(kind, Input)
    shape, classes = (size, *kind.dims), graph[graph.output].shape[-1]
    if kind.vocabulary:
        values: Any = random.integers(0, kind.vocabulary, shape)
    else:
        values = random.standard_normal(shape, dtype=np.float32)
    return {
        "input": values,
        "target": random.integers(0, classes, (size, *graph[graph.output].shape[:-1])),
    }
