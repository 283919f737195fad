"""Ops on images, in either layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from steptime.frameworks.jax.context import Array, LoweringContext, Weights, at_least_fp32
from steptime.frameworks.jax.layout import IMAGE
from steptime.graph import Layer
from steptime.graph.windows import cells, covering_pads


def average_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    total = _reduce(layer, context, at_least_fp32(x), 0.0, lax.add)
    counts = np.array(cells(layer), np.float32)
    counts = counts.reshape(context.layout.for_all_axes(counts.shape, 1))
    return (total / counts).astype(x.dtype)


def batch_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    values = at_least_fp32(x)
    mean = at_least_fp32(weights["running_mean"])
    variance = at_least_fp32(weights["running_variance"])
    if context.training:
        moments = _moments_in_two_passes
        if jax.default_backend() != "cpu":
            moments = _moments_in_one_pass
        mean, variance = moments(values, mean, context)
        count = x.size // mean.size
        unbiased = variance * (count / max(count - 1, 1))
        _update_average(layer, weights, context, "running_mean", mean)
        _update_average(layer, weights, context, "running_variance", unbiased)
    scale = weights["weight"] * lax.rsqrt(variance + op.epsilon)
    scale = context.layout.per_channel(scale, x)
    mean = context.layout.per_channel(mean, x)
    bias = context.layout.per_channel(weights["bias"], x)
    return ((values - mean) * scale + bias).astype(x.dtype)


def _update_average(
    layer: Layer, weights: Weights, context: LoweringContext, name: str, value: Array
) -> None:
    op: Any = layer.op
    average = weights[name]
    moved = (1 - op.momentum) * average + op.momentum * value
    context.statistics[f"{layer.name}.{name}"] = moved.astype(average.dtype)


def _moments_in_two_passes(x: Array, near: Array, context: LoweringContext) -> tuple[Array, Array]:
    """Mean and biased variance, for the CPU: there XLA stores the difference from the mean, which
    the rest of the layer uses again."""
    axes = context.layout.all_but_channels(x)
    mean = x.mean(axes)
    # The derivative of the variance by the subtracted mean is zero, so the backward pass skips it.
    fixed = lax.stop_gradient(context.layout.per_channel(mean, x))
    return mean, lax.square(x - fixed).mean(axes)


def _moments_in_one_pass(x: Array, near: Array, context: LoweringContext) -> tuple[Array, Array]:
    """Mean and biased variance, for devices where reading x takes the time, such as GPUs.

    `near` is close to the mean. Subtracting it before squaring avoids the cancellation of two large
    numbers, and XLA fuses the subtraction with both sums."""
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
    if not op.bias:
        return y
    return context.add_bias(y, context.layout.per_channel(weights["bias"], y))


def global_average_pool(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array
) -> Array:
    return x.mean((1, 2) if context.layout.last else (2, 3))


def lrn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    axis = context.layout.channel_axis(x)
    values = at_least_fp32(x)
    squares = lax.square(values)
    window = _for_one_axis(axis, op.size, 1)
    strides = (1,) * IMAGE
    pads = _for_one_axis(axis, (op.size // 2, op.size // 2), (0, 0))
    # Channels beyond the first and the last count as zero.
    zero = np.array(0, values.dtype)
    total = lax.reduce_window(squares, zero, lax.add, window, strides, pads)
    return (values * (op.k + op.alpha / op.size * total) ** -op.beta).astype(x.dtype)


def max_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return _reduce(layer, context, x, -jnp.inf, lax.max)


def pad_channels(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    axis = context.layout.channel_axis(x)
    return jnp.pad(x, _for_one_axis(axis, (op.before, op.after), (0, 0)))


OPS: dict[str, Callable[..., Array]] = {
    "average_pool": average_pool,
    "batch_norm": batch_norm,
    "conv": conv,
    "global_average_pool": global_average_pool,
    "lrn": lrn,
    "max_pool": max_pool,
    "pad_channels": pad_channels,
}


def _reduce(
    layer: Layer,
    context: LoweringContext,
    x: Array,
    empty: float,
    combine: Callable[..., Array],
) -> Array:
    """`empty`: the value of a window without cells. `combine`: makes one cell of two."""
    op: Any = layer.op
    window = context.layout.for_all_axes(op.kernel, 1)
    stride = context.layout.for_all_axes(op.stride, 1)
    # `reduce_window` rounds down; with these pads that gives the windows of the layer.
    pads = context.layout.for_all_axes(covering_pads(layer), (0, 0))
    return lax.reduce_window(x, np.array(empty, x.dtype), combine, window, stride, pads)


def _for_one_axis(axis: int, setting: Any, rest: Any) -> list[Any]:
    """The setting for this axis of an image, and `rest` for the three others."""
    return [setting if index == axis else rest for index in range(IMAGE)]
