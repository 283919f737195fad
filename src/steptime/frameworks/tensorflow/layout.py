"""Where things lie in memory. TensorFlow's convolutions on the CPU know one order, channels last, so that is how images
are kept whatever the case's layout; the graph's own order, channels first, is called logical."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from steptime.graph import Graph

IMAGE = 4  # axes, with the batch
LAST = {1: 3, 2: 1, 3: 2}  # where an image's logical axis lies
KERNELS = {"conv": (2, 3, 1, 0), "dense": (1, 0), "gru": (1, 0), "lstm": (1, 0), "rnn": (1, 0)}
"""The order of axes that TensorFlow's own layers give to the weights of products: filters or units last."""


def stored(x: Any) -> Any:
    """A NumPy batch, from the logical order."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if x.ndim == IMAGE else x


def put(x: Any) -> Any:
    """A tensor, from the logical order."""
    return tf.transpose(x, (0, 2, 3, 1)) if len(x.shape) == IMAGE else x


def logical(x: Any) -> Any:
    return tf.transpose(x, (0, 3, 1, 2)) if len(x.shape) == IMAGE else x


def axis(x: Any, place: int) -> int:
    """Where the axis `place` of a sample's logical shape lies in x, which has the batch in front."""
    rank = len(x.shape)
    found = 1 + place % (rank - 1)
    return LAST[found] if rank == IMAGE else found


def turns(graph: Graph) -> dict[str, tuple[int, ...]]:
    """How the axes of weights are turned before they are stored, by canonical name; the others stay."""
    return {
        name: KERNELS[layer.op.name]
        for layer in graph
        if layer.op.name in KERNELS
        for name, weight in layer.weights.items()
        if len(weight.shape) > 1
    }
