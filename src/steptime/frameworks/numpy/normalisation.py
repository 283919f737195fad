"""Layers that divide by a spread: of the batch, of one place's features, of neighbouring channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.numpy.context import Array, Back, Gradients, LoweringContext
from steptime.graph import Layer


def batch_norm(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    form = [1, -1, *[1] * (x.ndim - 2)]
    settings = layer.op.settings()
    mean, variance = weights["running_mean"], weights["running_variance"]
    if context.training:
        mean, variance = x.mean(axis=axes), x.var(axis=axes)
        _follow(
            layer,
            weights,
            context,
            {"running_mean": mean, "running_variance": _unbiased(variance, x)},
        )
    scale = 1 / np.sqrt(variance + settings["epsilon"])
    normal = (x - mean.reshape(form)) * scale.reshape(form)

    def back(gradient: Array) -> Gradients:
        of_weight, of_bias = (gradient * normal).sum(axis=axes), gradient.sum(axis=axes)
        inner = gradient
        if context.training:  # the batch's own mean and variance depend on x too
            inner = gradient - (of_bias.reshape(form) + normal * of_weight.reshape(form)) / (
                x.size / x.shape[1]
            )
        return [inner * (weights["weight"] * scale).reshape(form)], {
            "weight": of_weight,
            "bias": of_bias,
        }

    return normal * weights["weight"].reshape(form) + weights["bias"].reshape(form), back


def _unbiased(variance: Array, x: Array) -> Array:
    count = x.size // x.shape[1]
    return variance * count / max(count - 1, 1)


def _follow(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, batch: dict[str, Array]
) -> None:
    share = layer.op.settings()["momentum"]
    for part, value in batch.items():
        context.statistics[f"{layer.name}.{part}"] = (1 - share) * weights[part] + share * value


def layer_norm(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    spread = np.sqrt(x.var(axis=-1, keepdims=True) + layer.op.settings()["epsilon"])
    normal = (x - x.mean(axis=-1, keepdims=True)) / spread

    def back(gradient: Array) -> Gradients:
        inner = gradient * weights["weight"]
        along = normal * (inner * normal).mean(axis=-1, keepdims=True)
        rest = tuple(range(x.ndim - 1))
        found = {"weight": (gradient * normal).sum(axis=rest), "bias": gradient.sum(axis=rest)}
        return [(inner - inner.mean(axis=-1, keepdims=True) - along) / spread], found

    return normal * weights["weight"] + weights["bias"], back


def lrn(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    op: Any = layer.op
    share = op.alpha / op.size
    base = op.k + share * _around(x * x, op.size)
    factor = base**-op.beta

    def back(gradient: Array) -> Gradients:
        # A channel divides itself, and every channel whose window it is in; windows are odd, so both are the same.
        others = _around(gradient * x * factor / base, op.size)
        return [gradient * factor - 2 * share * op.beta * x * others], {}

    return x * factor, back


def _around(x: Array, size: int) -> Array:
    """Sum over the channels around each one; those outside the image are 0."""
    padded = np.pad(x, ((0, 0), (size // 2, size // 2), (0, 0), (0, 0)))
    return sum(padded[:, start : start + x.shape[1]] for start in range(size))
