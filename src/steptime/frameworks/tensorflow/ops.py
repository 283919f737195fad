"""One function per kind of layer: what it computes, in TensorFlow. A new kind is one entry in `KINDS`."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import tensorflow as tf

from steptime.frameworks.tensorflow import layout
from steptime.frameworks.tensorflow.context import Array, Walk, wide
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


def add(layer: Layer, weights: Weights, walk: Walk, a: Array, b: Array) -> Array:
    return a + b


def batch_norm(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    fused = len(x.shape) == layout.IMAGE and x.dtype != tf.float64 and not _slow_if_fused(walk, x)
    return (_fused_norm if fused else _plain_norm)(
        layer, {part: wide(w) for part, w in weights.items()}, walk, x
    )


def _slow_if_fused(walk: Walk, x: Array) -> bool:
    """Graphs of inference fuse it with the convolution before, and of a single image oneDNN then computes both 10 to 20
    times as slowly (ResNet-50, TensorFlow 2.21, AVX2). Keras writes it out, too."""
    return bool(
        x.shape[0] == 1 and not walk.training and not walk.xla and not tf.executing_eagerly()
    )


def _fused_norm(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    """The operation itself: its wrapper `tf.nn.fused_batch_norm` silently raises small epsilons. Its moving variance is
    the unbiased one."""
    kind: Any = layer.kind
    y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=weights["weight"], offset=weights["bias"], mean=weights["running_mean"],
        variance=weights["running_variance"], epsilon=kind.epsilon, exponential_avg_factor=kind.momentum,
        is_training=walk.training,
    )  # fmt: skip
    if walk.training:
        walk.statistics |= {
            f"{layer.name}.running_mean": mean,
            f"{layer.name}.running_variance": variance,
        }
    return y


def _plain_norm(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    values, channels = wide(x), layout.axis(x, 0)
    form = [-1 if place == channels else 1 for place in range(len(x.shape))]
    mean, variance = weights["running_mean"], weights["running_variance"]
    if walk.training:
        mean, variance = tf.nn.moments(
            values, [place for place in range(len(form)) if place != channels]
        )
        count = tf.cast(tf.size(x) // mean.shape[0], mean.dtype)
        unbiased = variance * (count / tf.maximum(count - 1, 1))
        for part, value in (("running_mean", mean), ("running_variance", unbiased)):
            moved = (1 - kind.momentum) * weights[part] + kind.momentum * value
            walk.statistics[f"{layer.name}.{part}"] = moved
    parts = (
        tf.reshape(part, form) for part in (mean, variance, weights["bias"], weights["weight"])
    )
    return tf.cast(tf.nn.batch_normalization(values, *parts, kind.epsilon), x.dtype)


def concat(layer: Layer, weights: Weights, walk: Walk, *parts: Array) -> Array:
    kind: Any = layer.kind
    return tf.concat(parts, layout.axis(parts[0], kind.axis))


def dense(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    y = product(layout.logical(x), weights["weight"])
    return layout.put(y + weights["bias"] if "bias" in weights else y)


def dropout(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    if not walk.training or walk.count is None:
        return x
    return tf.where(
        walk.draw(x.shape) >= kind.rate, x * (1 / (1 - kind.rate)), tf.zeros((), x.dtype)
    )


def flatten(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return tf.reshape(layout.logical(x), (-1, *layer.shape))


def gelu(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    """`tf.nn.gelu` rounds its constants to fp32, in fp64 too."""
    kind: Any = layer.kind
    bent = (
        tf.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))
        if kind.tanh
        else tf.math.erf(x * sqrt(0.5))
    )
    return 0.5 * x * (1 + bent)


def layer_norm(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    values = wide(layout.logical(x))
    mean, variance = tf.nn.moments(values, [-1], keepdims=True)
    y = tf.nn.batch_normalization(
        values, mean, variance, wide(weights["bias"]), wide(weights["weight"]), kind.epsilon
    )
    return layout.put(tf.cast(y, x.dtype))


def lrn(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    """TensorFlow's own adds up the squares where ours takes their mean, and has neither fp64 nor, on the CPU, bf16."""
    kind: Any = layer.kind
    reach, share = kind.size // 2, kind.alpha / kind.size
    if x.dtype != tf.float64:
        return tf.cast(
            tf.nn.local_response_normalization(wide(x), reach, kind.k, share, kind.beta), x.dtype
        )
    squares = tf.pad(x * x, [(0, 0), (0, 0), (0, 0), (reach, reach)])
    total = tf.add_n([squares[..., place : place + x.shape[3]] for place in range(kind.size)])
    return x * (kind.k + share * total) ** -kind.beta


def pad_channels(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    return tf.pad(x, [(0, 0), (0, 0), (0, 0), (kind.before, kind.behind)])


def relu(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return tf.nn.relu(x)


def scale(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    return x * kind.factor


def sigmoid(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return tf.sigmoid(x)


def slice_(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    if len(x.shape) == layout.IMAGE:
        return x[:, :, kind.start : kind.stop]  # the logical last axis is the width
    return x[..., kind.start : kind.stop]


def tanh(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return tf.tanh(x)


KINDS: dict[str, Callable[..., Array]] = {
    compute.__name__.rstrip("_"): compute
    for compute in (
        add, attention, average_pool, batch_norm, concat, conv, dense, dropout, embedding, flatten, gelu,
        global_average_pool, gru, layer_norm, lrn, lstm, max_pool, pad_channels, positions, relu, rnn, scale, sigmoid,
        slice_, tanh, tied_dense,
    )
} | {"tied_embedding": embedding}  # fmt: skip
AS_STORED = frozenset({"batch_norm", "embedding", "layer_norm", "tied_embedding"})
"""Kinds that get their weights as they are and see to the precision themselves."""
