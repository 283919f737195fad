"""Products, activations, and how tensors are joined and cut. Axes are counted on the logical shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from steptime.frameworks.jax.context import Array, Walk, Weights, wide
from steptime.graph import Layer


def add(layer: Layer, weights: Weights, walk: Walk, a: Array, b: Array) -> Array:
    return a + b


def concat(layer: Layer, weights: Weights, walk: Walk, *parts: Array) -> Array:
    kind: Any = layer.kind
    return jnp.concatenate(parts, walk.layout.axis(kind.axis, layer.shape))


def dense(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    y = walk.layout.logical(x) @ weights["weight"]
    return walk.layout.stored(walk.shifted(y, weights["bias"]) if "bias" in weights else y)


def dropout(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    if not walk.training or walk.key is None:
        return x
    kept = jax.random.bernoulli(walk.draw(), 1 - kind.rate, x.shape)
    return jnp.where(kept, x / (1 - kind.rate), 0)


def flatten(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return walk.layout.logical(x).reshape(len(x), -1)


def gelu(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    return jax.nn.gelu(x, approximate=kind.tanh)


def layer_norm(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    axis, values = walk.layout.axis(-1, layer.shape), wide(x)
    offset = values - values.mean(axis, keepdims=True)
    variance = lax.square(offset).mean(axis, keepdims=True)
    scale, bias = (walk.layout.along(axis, weights[part], x) for part in ("weight", "bias"))
    return (offset * lax.rsqrt(variance + kind.epsilon) * scale + bias).astype(x.dtype)


def relu(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return jax.nn.relu(x)


def scale(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    return x * kind.factor


def sigmoid(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return jax.nn.sigmoid(x)


def slice_(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    kind: Any = layer.kind
    return lax.slice_in_dim(x, kind.start, kind.stop, axis=walk.layout.axis(-1, layer.shape))


def tanh(layer: Layer, weights: Weights, walk: Walk, x: Array) -> Array:
    return jnp.tanh(x)


KINDS: dict[str, Callable[..., Array]] = {
    compute.__name__.rstrip("_"): compute
    for compute in (
        add,
        concat,
        dense,
        dropout,
        flatten,
        gelu,
        layer_norm,
        relu,
        scale,
        sigmoid,
        slice_,
        tanh,
    )
}
