"""What each op computes: a function that returns the output and its backward function.

The backward function maps the gradient of the output to the gradients of the inputs (None if an
input has none) and of the weights."""

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
from steptime.frameworks.numpy.context import (
    Array,
    Gradients,
    LoweringContext,
    Result,
    Weights,
    matrix_gradient,
    multiply_rows,
    unary,
)
from steptime.frameworks.numpy.context import sigmoid as stable_sigmoid
from steptime.frameworks.numpy.lstm import lstm
from steptime.frameworks.numpy.normalisation import batch_norm, layer_norm, lrn
from steptime.frameworks.numpy.recurrent import gru, rnn
from steptime.frameworks.numpy.windows import average_pool, conv, max_pool
from steptime.graph import Layer

ERF = np.vectorize(math.erf, otypes=[float])


def dense(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    weight = weights["weight"]

    def backward(gradient: Array) -> Gradients:
        of_weights = {
            "weight": matrix_gradient(gradient, x),
            "bias": gradient.reshape(-1, len(weight)).sum(axis=0),
        }
        return [multiply_rows(gradient, weight)], of_weights

    y = multiply_rows(x, weight.T)
    if "bias" in weights:
        y = y + weights["bias"]
    return y, backward


def dropout(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    rate = layer.op.settings()["rate"]
    factor: Array = 1.0
    if rate and context.training and context.rng is not None:
        survives = context.rng.random(x.shape) >= rate
        factor = survives.astype(x.dtype) / (1 - rate)
    return unary(x * factor, lambda gradient: gradient * factor)


def relu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    return unary(np.maximum(x, 0), lambda gradient: gradient * (x > 0))


def tanh(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    y = np.tanh(x)
    return unary(y, lambda gradient: gradient * (1 - y * y))


def sigmoid(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    y = stable_sigmoid(x)
    return unary(y, lambda gradient: gradient * y * (1 - y))


def gelu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    if layer.op.settings()["tanh"]:
        root = math.sqrt(2 / math.pi)
        activated = np.tanh(root * (x + 0.044715 * x**3))
        inner_derivative = 1 + 3 * 0.044715 * x**2
        share = 0.5 * (1 + activated)
        density = 0.5 * (1 - activated**2) * root * inner_derivative
    else:
        error = ERF(x / math.sqrt(2)).astype(x.dtype)
        share = 0.5 * (1 + error)
        density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return unary(x * share, lambda gradient: gradient * (share + x * density))


def scale(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    factor = layer.op.settings()["factor"]
    return unary(x * factor, lambda gradient: gradient * factor)


def concat(layer: Layer, weights: Weights, context: LoweringContext, *inputs: Array) -> Result:
    # The batch comes first.
    axis = layer.op.settings()["axis"] % len(layer.shape) + 1
    sizes = [x.shape[axis] for x in inputs]
    ends = np.cumsum(sizes)[:-1]

    def backward(gradient: Array) -> Gradients:
        return np.split(gradient, ends, axis), {}

    return np.concatenate(inputs, axis), backward


def slice_(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    settings = layer.op.settings()
    start = settings["start"]
    stop = settings["stop"]
    pads = [(0, 0)] * x.ndim
    pads[-1] = (start, x.shape[-1] - stop)
    return unary(x[..., start:stop], lambda gradient: np.pad(gradient, pads))


def pad_channels(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    settings = layer.op.settings()
    before = settings["before"]
    end = before + x.shape[1]
    y = np.pad(x, ((0, 0), (before, settings["after"]), (0, 0), (0, 0)))
    return unary(y, lambda gradient: gradient[:, before:end])


def add(layer: Layer, weights: Weights, context: LoweringContext, a: Array, b: Array) -> Result:
    return a + b, lambda gradient: ([gradient, gradient], {})


def flatten(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    return unary(x.reshape(len(x), -1), lambda gradient: gradient.reshape(x.shape))


def global_average_pool(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array
) -> Result:
    height, width = x.shape[2:]
    ones = np.ones((1, 1, height, width), x.dtype)
    shares = ones / (height * width)
    return unary(x.mean(axis=(2, 3)), lambda gradient: gradient[:, :, None, None] * shares)


OPS: dict[str, Callable[..., Result]] = {
    "add": add,
    "attention": attention,
    "average_pool": average_pool,
    "batch_norm": batch_norm,
    "concat": concat,
    "conv": conv,
    "dense": dense,
    "dropout": dropout,
    "embedding": embedding,
    "flatten": flatten,
    "gelu": gelu,
    "global_average_pool": global_average_pool,
    "gru": gru,
    "layer_norm": layer_norm,
    "lrn": lrn,
    "lstm": lstm,
    "max_pool": max_pool,
    "pad_channels": pad_channels,
    "positions": positions,
    "relu": relu,
    "rnn": rnn,
    "scale": scale,
    "sigmoid": sigmoid,
    "slice": slice_,
    "tanh": tanh,
    "tied_dense": tied_dense,
    "tied_embedding": tied_embedding,
}
