"""One function per op of layer: what it computes, in TensorFlow. A new op is one entry in `OPS`."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import tensorflow as tf

from steptime.frameworks.tensorflow import layout
from steptime.frameworks.tensorflow.context import Array, LoweringContext, wide
from steptime.frameworks.tensorflow.sequences import (
    attention,
    embedding,
    gru,
    lstm,
    positions,
    product,
    rnn,
    tied_dense,
)
from steptime.frameworks.tensorflow.windows import (
    Weights,
    average_pool,
    conv,
    global_average_pool,
    max_pool,
)
from steptime.graph import Layer


def add(layer: Layer, weights: Weights, context: LoweringContext, a: Array, b: Array) -> Array:
    return a + b


def batch_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    fused = (
        len(x.shape) == layout.IMAGE and x.dtype != tf.float64 and not _slow_if_fused(context, x)
    )
    return (_fused_norm if fused else _plain_norm)(
        layer, {part: wide(w) for part, w in weights.items()}, context, x
    )


def _slow_if_fused(context: LoweringContext, x: Array) -> bool:
    """Graphs of inference fuse it with the convolution before, and of a single image oneDNN then computes both 10 to 20
    times as slowly (ResNet-50, TensorFlow 2.21, AVX2). Keras writes it out, too."""
    return bool(
        x.shape[0] == 1 and not context.training and not context.xla and not tf.executing_eagerly()
    )


def _fused_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    """The operation itself: its wrapper `tf.nn.fused_batch_norm` silently raises small epsilons. Its moving variance is
    the unbiased one."""
    op: Any = layer.op
    y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=weights["weight"], offset=weights["bias"], mean=weights["running_mean"],
        variance=weights["running_variance"], epsilon=op.epsilon, exponential_avg_factor=op.momentum,
        is_training=context.training,
    )  # fmt: skip
    if context.training:
        context.statistics |= {
            f"{layer.name}.running_mean": mean,
            f"{layer.name}.running_variance": variance,
        }
    return y


def _plain_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    values, channels = wide(x), layout.axis(x, 0)
    form = [-1 if place == channels else 1 for place in range(len(x.shape))]
    mean, variance = weights["running_mean"], weights["running_variance"]
    if context.training:
        mean, variance = tf.nn.moments(
            values, [place for place in range(len(form)) if place != channels]
        )
        count = tf.cast(tf.size(x) // mean.shape[0], mean.dtype)
        unbiased = variance * (count / tf.maximum(count - 1, 1))
        for part, value in (("running_mean", mean), ("running_variance", unbiased)):
            moved = (1 - op.momentum) * weights[part] + op.momentum * value
            context.statistics[f"{layer.name}.{part}"] = moved
    parts = (
        tf.reshape(part, form) for part in (mean, variance, weights["bias"], weights["weight"])
    )
    return tf.cast(tf.nn.batch_normalization(values, *parts, op.epsilon), x.dtype)


def concat(layer: Layer, weights: Weights, context: LoweringContext, *parts: Array) -> Array:
    op: Any = layer.op
    return tf.concat(parts, layout.axis(parts[0], op.axis))


def dense(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    y = product(layout.logical(x), weights["weight"])
    return layout.put(y + weights["bias"] if "bias" in weights else y)


def dropout(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    if not context.training or context.count is None:
        return x
    return tf.where(
        context.draw(x.shape) >= op.rate, x * (1 / (1 - op.rate)), tf.zeros((), x.dtype)
    )


def flatten(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return tf.reshape(layout.logical(x), (-1, *layer.shape))


def gelu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    """`tf.nn.gelu` rounds its constants to fp32, in fp64 too."""
    op: Any = layer.op
    bent = (
        tf.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))
        if op.tanh
        else tf.math.erf(x * sqrt(0.5))
    )
    return 0.5 * x * (1 + bent)


def layer_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    values = wide(layout.logical(x))
    mean, variance = tf.nn.moments(values, [-1], keepdims=True)
    y = tf.nn.batch_normalization(
        values, mean, variance, wide(weights["bias"]), wide(weights["weight"]), op.epsilon
    )
    return layout.put(tf.cast(y, x.dtype))


def lrn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    """TensorFlow's own adds up the squares where ours takes their mean, and has neither fp64 nor, on the CPU, bf16."""
    op: Any = layer.op
    reach, share = op.size // 2, op.alpha / op.size
    if x.dtype != tf.float64:
        return tf.cast(
            tf.nn.local_response_normalization(wide(x), reach, op.k, share, op.beta), x.dtype
        )
    squares = tf.pad(x * x, [(0, 0), (0, 0), (0, 0), (reach, reach)])
    total = tf.add_n([squares[..., place : place + x.shape[3]] for place in range(op.size)])
    return x * (op.k + share * total) ** -op.beta


def pad_channels(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return tf.pad(x, [(0, 0), (0, 0), (0, 0), (op.before, op.after)])


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
    compute.__name__.rstrip("_"): compute
    for compute in (
        add, attention, average_pool, batch_norm, concat, conv, dense, dropout, embedding, flatten, gelu,
        global_average_pool, gru, layer_norm, lrn, lstm, max_pool, pad_channels, positions, relu, rnn, scale, sigmoid,
        slice_, tanh, tied_dense,
    )
} | {"tied_embedding": embedding}  # fmt: skip
AS_STORED = frozenset({"batch_norm", "embedding", "layer_norm", "tied_embedding"})
"""Kinds that get their weights as they are and see to the precision themselves."""
