"""The order of axes in memory.

TensorFlow's convolutions on the CPU know one order, channels last. So images are stored that way,
whatever layout the case asks for. The order of the graph, channels first, is called logical."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from steptime.graph import Graph

IMAGE = 4  # axes, including the batch
# Logical axis of an image -> its axis in memory.
LAST = {1: 3, 2: 1, 3: 2}
# The order of axes of the weights of products in TensorFlow's layers: filters or units last.
KERNELS = {"conv": (2, 3, 1, 0), "dense": (1, 0), "gru": (1, 0), "lstm": (1, 0), "rnn": (1, 0)}


def batch_to_stored(x: Any) -> Any:
    """A NumPy batch, from the logical order."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if x.ndim == IMAGE else x


def to_stored(x: Any) -> Any:
    """A tensor, from the logical order."""
    return tf.transpose(x, (0, 2, 3, 1)) if len(x.shape) == IMAGE else x


def to_logical(x: Any) -> Any:
    return tf.transpose(x, (0, 3, 1, 2)) if len(x.shape) == IMAGE else x


def axis(x: Any, logical: int) -> int:
    """The axis of x, counted with the batch, of an axis of a sample's logical shape."""
    rank = len(x.shape)
    index = 1 + logical % (rank - 1)
    return LAST[index] if rank == IMAGE else index


def transpositions(graph: Graph) -> dict[str, tuple[int, ...]]:
    """Canonical name -> the order of axes in which the weight is stored, if it is transposed."""
    orders = {}
    for layer in graph:
        if layer.op.name not in KERNELS:
            continue
        for name, weight in layer.weights.items():
            if len(weight.shape) > 1:
                orders[name] = KERNELS[layer.op.name]
    return orders
