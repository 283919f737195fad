"""Products, activations, and how tensors are joined and cut. Axes count on the logical shape."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import tensorflow as tf

from steptime.frameworks.tensorflow import layout
from steptime.frameworks.tensorflow.context import Array, LoweringContext, Weights, at_least_fp32
from steptime.frameworks.tensorflow.ops.products import multiply_rows
from steptime.graph import Layer


def add(layer: Layer, weights: Weights, context: LoweringContext, a: Array, b: Array) -> Array:
    return a + b


def concat(layer: Layer, weights: Weights, context: LoweringContext, *inputs: Array) -> Array:
    op: Any = layer.op
    return tf.concat(inputs, layout.axis(inputs[0], op.axis))


def dense(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    y = multiply_rows(layout.to_logical(x), weights["weight"])
    if "bias" in weights:
        y = y + weights["bias"]
    return layout.to_stored(y)


def dropout(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    if not context.training or context.step_count is None:
        return x
    mask = context.draw_uniform(x.shape) >= op.rate
    return tf.where(mask, x * (1 / (1 - op.rate)), tf.zeros((), x.dtype))


def flatten(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return tf.reshape(layout.to_logical(x), (-1, *layer.shape))


def gelu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    """`tf.nn.gelu` rounds its constants to fp32, in fp64 too."""
    op: Any = layer.op
    if op.tanh:
        gate = tf.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))
    else:
        gate = tf.math.erf(x * sqrt(0.5))
    return 0.5 * x * (1 + gate)


def layer_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    values = at_least_fp32(layout.to_logical(x))
    mean, variance = tf.nn.moments(values, [-1], keepdims=True)
    bias = at_least_fp32(weights["bias"])
    scale = at_least_fp32(weights["weight"])
    y = tf.nn.batch_normalization(values, mean, variance, bias, scale, op.epsilon)
    return layout.to_stored(tf.cast(y, x.dtype))


def relu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return tf.nn.relu(x)


def scale(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return x * op.factor


def sigmoid(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return tf.sigmoid(x)


def slice_(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    if len(x.shape) == layout.IMAGE:
        return x[:, :, op.start : op.stop]  # the logical last axis is the width
    return x[..., op.start : op.stop]


def tanh(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return tf.tanh(x)


OPS: dict[str, Callable[..., Array]] = {
    "add": add,
    "concat": concat,
    "dense": dense,
    "dropout": dropout,
    "flatten": flatten,
    "gelu": gelu,
    "layer_norm": layer_norm,
    "relu": relu,
    "scale": scale,
    "sigmoid": sigmoid,
    "slice": slice_,
    "tanh": tanh,
}
