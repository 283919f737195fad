"""Layers that work on images, in either layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from steptime.frameworks.jax.context import Array, LoweringContext, Weights, wide
from steptime.frameworks.jax.layout import IMAGE
from steptime.graph import Layer
from steptime.graph.windows import cells, covering_pads


def average_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    total = _reduce(layer, context, wide(x), (0.0, lax.add))
    counts = np.array(cells(layer), np.float32)
    return (total / counts.reshape(context.layout.around(counts.shape, 1))).astype(x.dtype)


def batch_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    values, mean, variance = (
        wide(x),
        wide(weights["running_mean"]),
        wide(weights["running_variance"]),
    )
    if context.training:
        moments = _in_two_passes if jax.default_backend() == "cpu" else _in_one_pass
        mean, variance = moments(values, mean, context)
        count = x.size // mean.size
        for part, value in (
            ("running_mean", mean),
            ("running_variance", variance * (count / max(count - 1, 1))),
        ):
            moved = (1 - op.momentum) * weights[part] + op.momentum * value
            context.statistics[f"{layer.name}.{part}"] = moved.astype(weights[part].dtype)
    scale = weights["weight"] * lax.rsqrt(variance + op.epsilon)
    scale, mean, bias = (context.layout.per_channel(v, x) for v in (scale, mean, weights["bias"]))
    return ((values - mean) * scale + bias).astype(x.dtype)


def _in_two_passes(x: Array, near: Array, context: LoweringContext) -> tuple[Array, Array]:
    """Mean and biased variance. XLA writes the difference down on the CPU, where the rest of the layer finds it."""
    axes = context.layout.all_but_channels(x)
    mean = x.mean(axes)
    # The variance does not change with the mean that is subtracted, so the way back need not go through it.
    fixed = lax.stop_gradient(context.layout.per_channel(mean, x))
    return mean, lax.square(x - fixed).mean(axes)


def _in_one_pass(x: Array, near: Array, context: LoweringContext) -> tuple[Array, Array]:
    """The same where reading x is what takes time, as on a GPU. Subtracting something near the mean before squaring
    keeps the difference of two large numbers exact; XLA fuses it with both sums there."""
    axes = context.layout.all_but_channels(x)
    offset = x - context.layout.per_channel(near, x)
    mean = offset.mean(axes)
    variance = lax.max(lax.square(offset).mean(axes) - lax.square(mean), jnp.zeros_like(mean))
    return near + mean, variance


def conv(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    y = lax.conv_general_dilated(
        x,
        weights["weight"],
        window_strides=op.stride,
        padding=op.padding,
        rhs_dilation=op.dilation,
        dimension_numbers=context.layout.convolution,
        feature_group_count=op.groups,
    )
    return context.shifted(y, context.layout.per_channel(weights["bias"], y)) if op.bias else y


def global_average_pool(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array
) -> Array:
    return x.mean((1, 2) if context.layout.last else (2, 3))


def lrn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    axis, values = context.layout.channel_axis(x), wide(x)
    window = _at(axis, op.size, 1)
    pads = _at(axis, (op.size // 2,) * 2, (0, 0))
    total = lax.reduce_window(
        lax.square(values), np.array(0, values.dtype), lax.add, window, (1,) * IMAGE, pads
    )
    return (values * (op.k + op.alpha / op.size * total) ** -op.beta).astype(x.dtype)


def max_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return _reduce(layer, context, x, (-jnp.inf, lax.max))


def pad_channels(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return jnp.pad(x, _at(context.layout.channel_axis(x), (op.before, op.behind), (0, 0)))


OPS: dict[str, Callable[..., Array]] = {
    compute.__name__: compute
    for compute in (
        average_pool,
        batch_norm,
        conv,
        global_average_pool,
        lrn,
        max_pool,
        pad_channels,
    )
}


def _reduce(
    layer: Layer, context: LoweringContext, x: Array, rule: tuple[float, Callable[..., Array]]
) -> Array:
    """`rule`: what an empty window has, and how two cells become one."""
    op: Any = layer.op
    empty, join = rule
    pads = context.layout.around(covering_pads(layer), (0, 0))
    window, stride = (context.layout.around(pair, 1) for pair in (op.kernel, op.stride))
    return lax.reduce_window(x, np.array(empty, x.dtype), join, window, stride, pads)


def _at(axis: int, setting: Any, rest: Any) -> list[Any]:
    """A setting of one axis for all four."""
    return [setting if place == axis else rest for place in range(IMAGE)]
