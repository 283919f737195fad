"""What each op computes. A layer's function returns its output and the way back: from the output's gradient to those
of its inputs (None: it has none) and of its weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from steptime.frameworks.numpy.attention import (
    attention,
    embedding,
    positions,
    tied_dense,
    tied_embedding,
)
from steptime.frameworks.numpy.context import Array, Back, Gradients, LoweringContext, outer, times
from steptime.frameworks.numpy.lstm import lstm
from steptime.frameworks.numpy.normalisation import batch_norm, layer_norm, lrn
from steptime.frameworks.numpy.recurrent import gru, rnn
from steptime.frameworks.numpy.windows import average_pool, conv, max_pool
from steptime.graph import Layer

ERF = np.vectorize(math.erf, otypes=[float])


def dense(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    weight = weights["weight"]

    def back(gradient: Array) -> Gradients:
        return [times(gradient, weight)], {
            "weight": outer(gradient, x),
            "bias": gradient.reshape(-1, len(weight)).sum(axis=0),
        }

    y = times(x, weight.T)
    return y + weights["bias"] if "bias" in weights else y, back


def dropout(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    rate = layer.op.settings()["rate"]
    factor: Array = 1.0
    if rate and context.training and context.random is not None:
        factor = (context.random.random(x.shape) >= rate).astype(x.dtype) / (1 - rate)
    return x * factor, lambda gradient: ([gradient * factor], {})


def relu(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    return np.maximum(x, 0), lambda gradient: ([gradient * (x > 0)], {})


def tanh(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    y = np.tanh(x)
    return y, lambda gradient: ([gradient * (1 - y * y)], {})


def sigmoid(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    y = 0.5 * (1 + np.tanh(x / 2))
    return y, lambda gradient: ([gradient * y * (1 - y)], {})


def gelu(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    if layer.op.settings()["tanh"]:
        bent = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        share = 0.5 * (1 + bent)
        density = 0.5 * (1 - bent**2) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    else:
        share = 0.5 * (1 + ERF(x / math.sqrt(2)).astype(x.dtype))
        density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return x * share, lambda gradient: ([gradient * (share + x * density)], {})


def scale(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    factor = layer.op.settings()["factor"]
    return x * factor, lambda gradient: ([gradient * factor], {})


def concat(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, *parts: Array
) -> tuple[Array, Back]:
    axis = layer.op.settings()["axis"] % len(layer.shape) + 1  # the batch comes first
    ends = np.cumsum([part.shape[axis] for part in parts])[:-1]
    return np.concatenate(parts, axis), lambda gradient: (np.split(gradient, ends, axis), {})


def slice_(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    start, stop = layer.op.settings()["start"], layer.op.settings()["stop"]
    around = [(0, 0)] * (x.ndim - 1) + [(start, x.shape[-1] - stop)]
    return x[..., start:stop], lambda gradient: ([np.pad(gradient, around)], {})


def pad_channels(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    before, after = layer.op.settings()["before"], layer.op.settings()["after"]
    y = np.pad(x, ((0, 0), (before, after), (0, 0), (0, 0)))
    return y, lambda gradient: ([gradient[:, before : before + x.shape[1]]], {})


def add(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, a: Array, b: Array
) -> tuple[Array, Back]:
    return a + b, lambda gradient: ([gradient, gradient], {})


def flatten(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    return x.reshape(len(x), -1), lambda gradient: ([gradient.reshape(x.shape)], {})


def global_average_pool(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    height, width = x.shape[2:]
    even = np.ones((1, 1, height, width), x.dtype) / (height * width)
    return x.mean(axis=(2, 3)), lambda gradient: ([gradient[:, :, None, None] * even], {})


LAYERS: dict[str, Callable[..., tuple[Array, Back]]] = {
    compute.__name__.rstrip("_"): compute
    for compute in (
        add, attention, average_pool, batch_norm, concat, conv, dense, dropout, embedding, flatten, gelu,
        global_average_pool, gru, layer_norm, lrn, lstm, max_pool, pad_channels, positions, relu, rnn, scale, sigmoid,
        slice_, tanh, tied_dense, tied_embedding,
    )
}  # fmt: skip
