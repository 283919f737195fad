"""Layers that work on images, in either layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from steptime.frameworks.jax.context import Array, Walk, Weights, wide
from steptime.frameworks.jax.layout import IMAGE
from steptime.graph import Layer
from steptime.graph.windows import cells, covering_pads


def average_pool(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    total = _reduce(layer, walk, wide(x), (0.0, lax.add))
    counts = np.array(cells(layer), np.float32)
    return (total / counts.reshape(walk.layout.around(counts.shape, 1))).astype(x.dtype)


def batch_norm(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    values, mean, variance = (
        wide(x),
        wide(weights["running_mean"]),
        wide(weights["running_variance"]),
    )
    if walk.training:
        moments = _in_two_passes if jax.default_backend() == "cpu" else _in_one_pass
        mean, variance = moments(values, mean, walk)
        count = x.size // mean.size
        for part, value in (
            ("running_mean", mean),
            ("running_variance", variance * (count / max(count - 1, 1))),
        ):
            moved = (1 - kind.momentum) * weights[part] + kind.momentum * value
            walk.statistics[f"{layer.name}.{part}"] = moved.astype(weights[part].dtype)
    scale = weights["weight"] * lax.rsqrt(variance + kind.epsilon)
    scale, mean, bias = (walk.layout.per_channel(v, x) for v in (scale, mean, weights["bias"]))
    return ((values - mean) * scale + bias).astype(x.dtype)


def _in_two_passes(x: Array, near: Array, walk: Walk) -> tuple[Array, Array]:
    """Mean and biased variance. XLA writes the difference down on the CPU, where the rest of the layer finds it."""
    axes = walk.layout.all_but_channels(x)
    mean = x.mean(axes)
    # The variance does not change with the mean that is subtracted, so the way back need not go through it.
    fixed = lax.stop_gradient(walk.layout.per_channel(mean, x))
    return mean, lax.square(x - fixed).mean(axes)


def _in_one_pass(x: Array, near: Array, walk: Walk) -> tuple[Array, Array]:
    """The same where reading x is what takes time, as on a GPU. Subtracting something near the mean before squaring
    keeps the difference of two large numbers exact; XLA fuses it with both sums there."""
    axes = walk.layout.all_but_channels(x)
    offset = x - walk.layout.per_channel(near, x)
    mean = offset.mean(axes)
    variance = lax.max(lax.square(offset).mean(axes) - lax.square(mean), jnp.zeros_like(mean))
    return near + mean, variance


def conv(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    y = lax.conv_general_dilated(
        x,
        weights["weight"],
        window_strides=kind.stride,
        padding=kind.padding,
        rhs_dilation=kind.dilation,
        dimension_numbers=walk.layout.convolution,
        feature_group_count=kind.groups,
    )
    return walk.shifted(y, walk.layout.per_channel(weights["bias"], y)) if kind.bias else y


def global_average_pool(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return x.mean((1, 2) if walk.layout.last else (2, 3))


def lrn(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    axis, values = walk.layout.channel_axis(x), wide(x)
    window = _at(axis, kind.size, 1)
    pads = _at(axis, (kind.size // 2,) * 2, (0, 0))
    total = lax.reduce_window(
        lax.square(values), np.array(0, values.dtype), lax.add, window, (1,) * IMAGE, pads
    )
    return (values * (kind.k + kind.alpha / kind.size * total) ** -kind.beta).astype(x.dtype)


def max_pool(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return _reduce(layer, walk, x, (-jnp.inf, lax.max))


def pad_channels(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    return jnp.pad(x, _at(walk.layout.channel_axis(x), (kind.before, kind.behind), (0, 0)))


KINDS: dict[str, Callable[..., Array]] = {
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


def _reduce(layer: Layer, walk: Walk, x: Array, rule: tuple[float, Callable[..., Array]]) -> Array:
    """`rule`: what an empty window has, and how two cells become one."""
    kind: Any = layer.kind
    empty, join = rule
    pads = walk.layout.around(covering_pads(layer), (0, 0))
    window, stride = (walk.layout.around(pair, 1) for pair in (kind.kernel, kind.stride))
    return lax.reduce_window(x, np.array(empty, x.dtype), join, window, stride, pads)


def _at(axis: int, setting: Any, rest: Any) -> list[Any]:
    """A setting of one axis for all four."""
    return [setting if place == axis else rest for place in range(IMAGE)]
