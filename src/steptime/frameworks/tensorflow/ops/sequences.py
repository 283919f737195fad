"""Tokens, attention and recurrent layers.

Recurrent layers are unrolled: on the CPU a loop of TensorFlow costs more than its body. The inputs
of all time steps are multiplied at once; only what depends on the state is left for each step. The
state starts at zero, so the first step has no product with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from steptime.frameworks.tensorflow.context import (
    Array,
    LoweringContext,
    Weights,
    add_bias,
    at_least_fp32,
)
from steptime.frameworks.tensorflow.ops.products import multiply_rows
from steptime.graph import Layer


def attention(layer: Layer, weights: Weights, context: LoweringContext, *inputs: Array) -> Array:
    op: Any = layer.op
    query, keys, values = inputs
    scaled_query = query * op.scale_for(query.shape[-1])
    q = _split_heads(scaled_query, op.heads)
    k = _split_heads(keys, op.heads)
    v = _split_heads(values, op.heads)
    scores = at_least_fp32(tf.matmul(q, k, transpose_b=True))
    if op.causal:
        length = layer.shape[0]
        infinities = np.full((length, length), -np.inf, scores.dtype.as_numpy_dtype)
        scores += tf.constant(np.triu(infinities, 1))
    shares = tf.cast(tf.nn.softmax(scores), v.dtype)
    heads = tf.transpose(tf.matmul(shares, v), (0, 2, 1, 3))
    return tf.reshape(heads, (-1, *layer.shape))


def _split_heads(x: Array, heads: int) -> Array:
    time, features = x.shape[1:]
    split = tf.reshape(x, (-1, time, heads, features // heads))
    return tf.transpose(split, (0, 2, 1, 3))


def embedding(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    # Gather before the cast, so that the gradient has the used rows and not the complete table.
    return tf.cast(tf.gather(weights["weight"], x), context.dtype)


def tied_dense(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return multiply_rows(x, weights["weight"], transpose=True)


def positions(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return x + weights["weight"]


def lstm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    hidden = cell = None
    outputs = []
    for gates in _projected_steps(weights, x):
        if hidden is not None:
            gates = gates + tf.matmul(hidden, weights["weight_hidden"])
        input_gate, forget_gate, candidate, output_gate = tf.split(gates, 4, 1)
        entered = tf.sigmoid(input_gate) * tf.tanh(candidate)
        cell = entered if cell is None else tf.sigmoid(forget_gate) * cell + entered
        hidden = tf.sigmoid(output_gate) * tf.tanh(cell)
        outputs.append(hidden)
    return tf.stack(outputs, 1)


def gru(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    sizes = (2 * op.units, op.units)
    hidden = None
    outputs = []
    for projected in _projected_steps(weights, x):
        gates, candidate = tf.split(projected, sizes, 1)
        of_state = weights["bias_hidden"]
        if hidden is not None:
            product = tf.matmul(hidden, weights["weight_hidden"])
            state_gates, state_candidate = tf.split(product, sizes, 1)
            gates = gates + state_gates
            of_state = state_candidate + of_state
        reset, update = tf.split(tf.sigmoid(gates), 2, 1)
        new = tf.tanh(candidate + reset * of_state)
        hidden = (1 - update) * new if hidden is None else new + update * (hidden - new)
        outputs.append(hidden)
    return tf.stack(outputs, 1)


def rnn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    activation = tf.nn.relu if op.relu else tf.tanh
    hidden = None
    outputs = []
    for total in _projected_steps(weights, x):
        if hidden is not None:
            total = total + tf.matmul(hidden, weights["weight_hidden"])
        hidden = activation(total)
        outputs.append(hidden)
    return tf.stack(outputs, 1)


def _projected_steps(weights: Weights, x: Array) -> list[Array]:
    """The input of each time step, multiplied by its weight."""
    projected = add_bias(multiply_rows(x, weights["weight_input"]), weights["bias"])
    return tf.unstack(projected, axis=1)


OPS: dict[str, Callable[..., Array]] = {
    "attention": attention,
    "embedding": embedding,
    "gru": gru,
    "lstm": lstm,
    "positions": positions,
    "rnn": rnn,
    "tied_dense": tied_dense,
    "tied_embedding": embedding,
}
