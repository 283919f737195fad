"""What each kind computes. A layer's function returns its output and the way back: from the output's gradient to those
of its inputs (None: it has none) and of its weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steptime.frameworks.numpy.lstm import lstm
from steptime.frameworks.numpy.walk import Array, Back, Slopes, Walk
from steptime.frameworks.numpy.windows import average_pool, conv, max_pool
from steptime.graph import Layer


def dense(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    weight = weights["weight"]

    def back(slope: Array) -> Slopes:
        rows, inputs = slope.reshape(-1, slope.shape[-1]), x.reshape(-1, x.shape[-1])
        return [slope @ weight], {"weight": rows.T @ inputs, "bias": rows.sum(axis=0)}

    return x @ weight.T + weights.get("bias", 0.0), back


def embedding(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    def back(slope: Array) -> Slopes:
        total = np.zeros_like(weights["weight"])
        np.add.at(total, x, slope)  # a token may occur more than once
        return [None], {"weight": total}

    return weights["weight"][x], back


def batch_norm(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    form = [1, -1, *[1] * (x.ndim - 2)]
    settings = layer.kind.settings()
    mean, variance = weights["running_mean"], weights["running_variance"]
    if walk.training:
        mean, variance = x.mean(axis=axes), x.var(axis=axes)
        _follow(layer, weights, walk, {"running_mean": mean, "running_variance": _unbiased(variance, x)})
    scale = 1 / np.sqrt(variance + settings["epsilon"])
    normal = (x - mean.reshape(form)) * scale.reshape(form)

    def back(slope: Array) -> Slopes:
        of_weight, of_bias = (slope * normal).sum(axis=axes), slope.sum(axis=axes)
        inner = slope
        if walk.training:  # the batch's own mean and variance depend on x too
            inner = slope - (of_bias.reshape(form) + normal * of_weight.reshape(form)) / (x.size / x.shape[1])
        return [inner * (weights["weight"] * scale).reshape(form)], {"weight": of_weight, "bias": of_bias}

    return normal * weights["weight"].reshape(form) + weights["bias"].reshape(form), back


def _unbiased(variance: Array, x: Array) -> Array:
    count = x.size // x.shape[1]
    return variance * count / max(count - 1, 1)


def _follow(layer: Layer, weights: dict[str, Array], walk: Walk, batch: dict[str, Array]) -> None:
    share = layer.kind.settings()["momentum"]
    for part, value in batch.items():
        walk.statistics[f"{layer.name}.{part}"] = (1 - share) * weights[part] + share * value


def dropout(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    rate = layer.kind.settings()["rate"]
    factor: Array = 1.0
    if walk.training and walk.random is not None:
        factor = (walk.random.random(x.shape) >= rate) / (1 - rate)
    return x * factor, lambda slope: ([slope * factor], {})


def relu(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    return np.maximum(x, 0), lambda slope: ([slope * (x > 0)], {})


def tanh(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    y = np.tanh(x)
    return y, lambda slope: ([slope * (1 - y * y)], {})


def sigmoid(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    y = 0.5 * (1 + np.tanh(x / 2))
    return y, lambda slope: ([slope * y * (1 - y)], {})


def add(layer: Layer, weights: dict[str, Array], walk: Walk, a: Array, b: Array) -> tuple[Array, Back]:
    return a + b, lambda slope: ([slope, slope], {})


def flatten(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    return x.reshape(len(x), -1), lambda slope: ([slope.reshape(x.shape)], {})


def global_average_pool(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    height, width = x.shape[2:]
    even = np.ones((1, 1, height, width)) / (height * width)
    return x.mean(axis=(2, 3)), lambda slope: ([slope[:, :, None, None] * even], {})


LAYERS: dict[str, Callable[..., tuple[Array, Back]]] = {
    "dense": dense,
    "conv": conv,
    "max_pool": max_pool,
    "average_pool": average_pool,
    "global_average_pool": global_average_pool,
    "batch_norm": batch_norm,
    "relu": relu,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "dropout": dropout,
    "add": add,
    "flatten": flatten,
    "embedding": embedding,
    "lstm": lstm,
}
