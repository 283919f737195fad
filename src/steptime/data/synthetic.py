"""Synthetic batches from a seed: the same in every framework.

Images are standard normal; tokens and targets are uniform."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.graph import Graph
from steptime.graph.ops import Input

# Keeps batches apart from the weights' streams.
STREAM = 0x6261_7463


def synthetic_batch(graph: Graph, size: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, STREAM])
    op = graph.input.op
    assert isinstance(op, Input)
    shape = (size, *op.dims)
    # A language model has a target at every position of the sequence.
    *positions, classes = graph[graph.output].shape
    if op.vocabulary:
        values: Any = rng.integers(0, op.vocabulary, shape)
    else:
        values = rng.standard_normal(shape, dtype=np.float32)
    return {"input": values, "target": rng.integers(0, classes, (size, *positions))}
