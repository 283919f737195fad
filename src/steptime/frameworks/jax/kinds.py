"""One function per kind of layer: what it computes, in JAX. A new kind is one entry in `KINDS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from steptime.frameworks.jax.walk import Array, Walk
from steptime.graph import Layer
from steptime.graph.kinds import Pads

Weights = dict[str, Array]  # of one layer, by part


def add(layer: Layer, weights: Weights, walk: Walk, a: Array, b: Array) -> Array:
    return a + b


def average_pool(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    total = _reduce(layer, walk, wide(x), (0.0, lax.add))
    cells = _cells(layer, _whole_windows(layer))
    return (total / cells.reshape(walk.layout.around(cells.shape, 1))).astype(x.dtype)


def batch_norm(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    values, mean, variance = wide(x), wide(weights["running_mean"]), wide(weights["running_variance"])
    if walk.training:
        mean, variance, unbiased = _moments(values, mean, walk)
        for part, value in (("running_mean", mean), ("running_variance", unbiased)):
            moved = (1 - kind.momentum) * weights[part] + kind.momentum * value
            walk.statistics[f"{layer.name}.{part}"] = moved.astype(weights[part].dtype)
    scale = weights["weight"] * lax.rsqrt(variance + kind.epsilon)
    scale, mean, bias = (walk.layout.per_channel(v, x) for v in (scale, mean, weights["bias"]))
    return ((values - mean) * scale + bias).astype(x.dtype)


def _moments(x: Array, near: Array, walk: Walk) -> tuple[Array, Array, Array]:
    """Mean, biased and unbiased variance in one pass over x, which is as fast as it can be. Subtracting something near
    the mean before squaring keeps the difference of two large numbers exact."""
    axes = tuple(axis for axis in range(x.ndim) if axis != walk.layout.channel_axis(x))
    count = x.size // near.size
    offset = x - walk.layout.per_channel(near, x)
    mean = offset.mean(axes)
    variance = lax.max(lax.square(offset).mean(axes) - lax.square(mean), jnp.zeros_like(mean))
    return near + mean, variance, variance * (count / max(count - 1, 1))


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
    return y + walk.layout.per_channel(weights["bias"], y) if kind.bias else y


def dense(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    y = walk.layout.logical(x) @ weights["weight"].T
    return walk.layout.stored(y + weights["bias"] if "bias" in weights else y)


def dropout(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    if not walk.training or walk.key is None:
        return x
    kept = jax.random.bernoulli(walk.draw(), 1 - kind.rate, x.shape)
    return jnp.where(kept, x / (1 - kind.rate), 0)


def embedding(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return jnp.take(weights["weight"], x, axis=0, mode="clip")  # tokens are in range; the default looks after each


def flatten(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return walk.layout.logical(x).reshape(len(x), -1)


def global_average_pool(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return x.mean((1, 2) if walk.layout.last else (2, 3))


def lstm(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    """All inputs are multiplied at once; only what depends on the state is left for the loop over time."""
    kind: Any = layer.kind
    of_hidden = weights["weight_hidden"].T

    def move(state: tuple[Array, Array], arrived: Array) -> tuple[tuple[Array, Array], Array]:
        hidden, cell = state
        entry, forget, candidate, exit_ = jnp.split(arrived + hidden @ of_hidden, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(entry) * jnp.tanh(candidate)
        hidden = jax.nn.sigmoid(exit_) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zero = jnp.zeros((len(x), kind.units), x.dtype)
    arriving = x.swapaxes(0, 1) @ weights["weight_input"].T + weights["bias"]
    return lax.scan(move, (zero, zero), arriving)[1].swapaxes(0, 1)


def max_pool(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return _reduce(layer, walk, x, (-jnp.inf, lax.max))


def relu(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return jax.nn.relu(x)


def sigmoid(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return jax.nn.sigmoid(x)


def tanh(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return jnp.tanh(x)


KINDS: dict[str, Callable[..., Array]] = {
    compute.__name__: compute
    for compute in (
        add, average_pool, batch_norm, conv, dense, dropout, embedding, flatten, global_average_pool, lstm, max_pool,
        relu, sigmoid, tanh,
    )
}  # fmt: skip


def wide(x: Array) -> Array:
    """At least fp32: sums of many low-precision numbers would lose what is small."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _reduce(layer: Layer, walk: Walk, x: Array, rule: tuple[float, Callable[..., Array]]) -> Array:
    """`rule`: what an empty window has, and how two cells become one."""
    kind: Any = layer.kind
    empty, join = rule
    pads = walk.layout.around(_whole_windows(layer), (0, 0))
    window, stride = (walk.layout.around(pair, 1) for pair in (kind.kernel, kind.stride))
    return lax.reduce_window(x, np.array(empty, x.dtype), join, window, stride, pads)


def _whole_windows(layer: Layer) -> Pads:
    """Padding with which rounding down gives the layer's own windows, also where the layer rounds up."""
    kind: Any = layer.kind
    pads = []
    for axis, (before, _) in enumerate(kind.padding):
        needed = (layer.shape[1 + axis] - 1) * kind.stride[axis] + kind.kernel[axis]
        pads.append((before, max(0, needed - before - layer.input_shapes[0][1 + axis])))
    return (pads[0], pads[1])


def _cells(layer: Layer, pads: Pads) -> Any:
    """How many cells of each window lie inside the image, as (height, width)."""
    kind: Any = layer.kind
    counts = []
    for axis, (before, _) in enumerate(pads):
        starts = np.arange(layer.shape[1 + axis]) * kind.stride[axis] - before
        ends = np.minimum(starts + kind.kernel[axis], layer.input_shapes[0][1 + axis])
        counts.append(ends - np.maximum(starts, 0))
    return np.outer(counts[0], counts[1]).astype(np.float32)
