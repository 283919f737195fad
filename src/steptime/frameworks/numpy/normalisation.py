"""Normalisation over the batch, over the features of a position, over neighbouring channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.numpy.context import (
    Array,
    Gradients,
    LoweringContext,
    Result,
    Weights,
)
from steptime.graph import Layer


def batch_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    per_channel = [1, -1, *[1] * (x.ndim - 2)]
    mean = weights["running_mean"]
    variance = weights["running_variance"]
    if context.training:
        mean = x.mean(axis=axes)
        variance = x.var(axis=axes)
        batch = {"running_mean": mean, "running_variance": _unbiased_variance(variance, x)}
        _update_statistics(layer, weights, context, batch)
    scale = 1 / np.sqrt(variance + layer.op.settings()["epsilon"])
    normal = (x - mean.reshape(per_channel)) * scale.reshape(per_channel)
    weight = weights["weight"].reshape(per_channel)
    bias = weights["bias"].reshape(per_channel)

    def backward(gradient: Array) -> Gradients:
        of_weight = (gradient * normal).sum(axis=axes)
        of_bias = gradient.sum(axis=axes)
        inner = gradient
        if context.training:
            # The mean and the variance of the batch depend on x too.
            count = x.size / x.shape[1]
            along = of_bias.reshape(per_channel) + normal * of_weight.reshape(per_channel)
            inner = gradient - along / count
        of_input = inner * (weights["weight"] * scale).reshape(per_channel)
        return [of_input], {"weight": of_weight, "bias": of_bias}

    return normal * weight + bias, backward


def _unbiased_variance(variance: Array, x: Array) -> Array:
    count = x.size // x.shape[1]
    return variance * count / max(count - 1, 1)


def _update_statistics(
    layer: Layer, weights: Weights, context: LoweringContext, batch: dict[str, Array]
) -> None:
    share = layer.op.settings()["momentum"]
    for role, value in batch.items():
        average = (1 - share) * weights[role] + share * value
        context.statistics[f"{layer.name}.{role}"] = average


def layer_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    epsilon = layer.op.settings()["epsilon"]
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + epsilon)
    normal = (x - x.mean(axis=-1, keepdims=True)) / deviation

    def backward(gradient: Array) -> Gradients:
        inner = gradient * weights["weight"]
        along = normal * (inner * normal).mean(axis=-1, keepdims=True)
        of_input = (inner - inner.mean(axis=-1, keepdims=True) - along) / deviation
        axes = tuple(range(x.ndim - 1))
        of_weight = (gradient * normal).sum(axis=axes)
        return [of_input], {"weight": of_weight, "bias": gradient.sum(axis=axes)}

    return normal * weights["weight"] + weights["bias"], backward


def lrn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    op: Any = layer.op
    share = op.alpha / op.size
    base = op.k + share * _sum_neighbours(x * x, op.size)
    factor = base**-op.beta

    def backward(gradient: Array) -> Gradients:
        # A channel divides itself and every channel whose window it is in. Windows are odd, so
        # these channels are the ones in its own window.
        others = _sum_neighbours(gradient * x * factor / base, op.size)
        return [gradient * factor - 2 * share * op.beta * x * others], {}

    return x * factor, backward


def _sum_neighbours(x: Array, size: int) -> Array:
    """Sum over the `size` channels around each one; those outside the image are 0."""
    half = size // 2
    channels = x.shape[1]
    padded = np.pad(x, ((0, 0), (half, half), (0, 0), (0, 0)))
    return sum(padded[:, start : start + channels] for start in range(size))
