"""Layers over time. Recurrent ones are unrolled: on the CPU a loop of TensorFlow's own costs more than its body."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from steptime.frameworks.tensorflow.context import Array, LoweringContext, shifted, wide
from steptime.graph import Layer

Weights = dict[str, Array]  # of one layer, by part


def product(x: Array, weight: Array, *, turned: bool = False) -> Array:
    """x · weight over the last axis; rows of all samples together, because one large product beats many small ones.
    `turned`: the weight has its units first."""
    features = x.shape[-1]
    rows = tf.matmul(
        x if len(x.shape) == 2 else tf.reshape(x, (-1, features)), weight, transpose_b=turned
    )
    return rows if len(x.shape) == 2 else tf.reshape(rows, (-1, *x.shape[1:-1], rows.shape[-1]))


def tied_dense(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array, lender: Array
) -> Array:
    return product(x, weights["weight"], turned=True)


def embedding(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array, lender: Array = None
) -> Array:
    """Rows first and then their precision: so the gradient is of the rows that were used, not of the whole table."""
    return tf.cast(tf.gather(weights["weight"], x), context.dtype)


def positions(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return x + weights["weight"]


def attention(layer: Layer, weights: Weights, context: LoweringContext, *inputs: Array) -> Array:
    op: Any = layer.op
    query, keys, values = inputs
    width = query.shape[-1]
    q, k, v = (_heads(x, op.heads) for x in (query * op.scale_for(width), keys, values))
    scores = wide(tf.matmul(q, k, transpose_b=True))
    if op.causal:
        later = np.triu(np.full(layer.shape[:1] * 2, -np.inf, scores.dtype.as_numpy_dtype), 1)
        scores += tf.constant(later)
    seen = tf.matmul(tf.cast(tf.nn.softmax(scores), v.dtype), v)
    return tf.reshape(tf.transpose(seen, (0, 2, 1, 3)), (-1, *layer.shape))


def _heads(x: Array, heads: int) -> Array:
    time, features = x.shape[1:]
    return tf.transpose(tf.reshape(x, (-1, time, heads, features // heads)), (0, 2, 1, 3))


def lstm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    hidden = cell = None
    outputs = []
    for arrived in _arriving(weights, x):
        gates = arrived if hidden is None else arrived + tf.matmul(hidden, weights["weight_hidden"])
        entry, forget, candidate, exit_ = tf.split(gates, 4, 1)
        entered = tf.sigmoid(entry) * tf.tanh(candidate)
        cell = entered if cell is None else tf.sigmoid(forget) * cell + entered
        hidden = tf.sigmoid(exit_) * tf.tanh(cell)
        outputs.append(hidden)
    return tf.stack(outputs, 1)


def gru(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    hidden = None
    outputs = []
    for arrived in _arriving(weights, x):
        gates, candidate = tf.split(arrived, (2 * op.units, op.units), 1)
        recalled = weights["bias_hidden"]
        if hidden is not None:
            of_gates, of_candidate = tf.split(
                tf.matmul(hidden, weights["weight_hidden"]), (2 * op.units, op.units), 1
            )
            gates, recalled = gates + of_gates, of_candidate + recalled
        reset, update = tf.split(tf.sigmoid(gates), 2, 1)
        new = tf.tanh(candidate + reset * recalled)
        hidden = (1 - update) * new if hidden is None else new + update * (hidden - new)
        outputs.append(hidden)
    return tf.stack(outputs, 1)


def rnn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    bend = tf.nn.relu if op.relu else tf.tanh
    hidden = None
    outputs = []
    for arrived in _arriving(weights, x):
        hidden = bend(
            arrived if hidden is None else arrived + tf.matmul(hidden, weights["weight_hidden"])
        )
        outputs.append(hidden)
    return tf.stack(outputs, 1)


def _arriving(weights: Weights, x: Array) -> list[Array]:
    """All inputs are multiplied at once; only what depends on the state, which starts at 0, is left for each step."""
    return tf.unstack(shifted(product(x, weights["weight_input"]), weights["bias"]), axis=1)
