"""Products, activations, and how tensors are joined and cut. Axes are counted on the logical shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from steptime.frameworks.jax.context import Array, LoweringContext, Weights, wide
from steptime.graph import Layer


def add(layer: Layer, weights: Weights, context: LoweringContext, a: Array, b: Array) -> Array:
    return a + b


def concat(layer: Layer, weights: Weights, context: LoweringContext, *parts: Array) -> Array:
    op: Any = layer.op
    return jnp.concatenate(parts, context.layout.axis(op.axis, layer.shape))


def dense(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    y = context.layout.logical(x) @ weights["weight"]
    return context.layout.stored(context.shifted(y, weights["bias"]) if "bias" in weights else y)


def dropout(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    if not context.training or context.key is None:
        return x
    kept = jax.random.bernoulli(context.draw(), 1 - op.rate, x.shape)
    return jnp.where(kept, x / (1 - op.rate), 0)


def flatten(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return context.layout.logical(x).reshape(len(x), -1)


def gelu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return jax.nn.gelu(x, approximate=op.tanh)


def layer_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    axis, values = context.layout.axis(-1, layer.shape), wide(x)
    offset = values - values.mean(axis, keepdims=True)
    variance = lax.square(offset).mean(axis, keepdims=True)
    scale, bias = (context.layout.along(axis, weights[part], x) for part in ("weight", "bias"))
    return (offset * lax.rsqrt(variance + op.epsilon) * scale + bias).astype(x.dtype)


def relu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return jax.nn.relu(x)


def scale(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return x * op.factor


def sigmoid(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return jax.nn.sigmoid(x)


def slice_(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return lax.slice_in_dim(x, op.start, op.stop, axis=context.layout.axis(-1, layer.shape))


def tanh(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return jnp.tanh(x)


OPS: dict[str, Callable[..., Array]] = {
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
