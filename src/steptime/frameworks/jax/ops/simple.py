"""Products, activations, and how tensors are joined and cut. Axes count on the logical shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from steptime.frameworks.jax.context import Array, LoweringContext, Weights, at_least_fp32
from steptime.graph import Layer


def add(layer: Layer, weights: Weights, context: LoweringContext, a: Array, b: Array) -> Array:
    return a + b


def concat(layer: Layer, weights: Weights, context: LoweringContext, *inputs: Array) -> Array:
    op: Any = layer.op
    return jnp.concatenate(inputs, context.layout.axis(op.axis, layer.shape))


def dense(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    y = context.layout.to_logical(x) @ weights["weight"]
    if "bias" in weights:
        y = context.add_bias(y, weights["bias"])
    return context.layout.to_stored(y)


def dropout(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    if not context.training or context.key is None:
        return x
    mask = jax.random.bernoulli(context.draw_key(), 1 - op.rate, x.shape)
    return jnp.where(mask, x / (1 - op.rate), 0)


def flatten(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return context.layout.to_logical(x).reshape(len(x), -1)


def gelu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return jax.nn.gelu(x, approximate=op.tanh)


def layer_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    axis = context.layout.axis(-1, layer.shape)
    values = at_least_fp32(x)
    offset = values - values.mean(axis, keepdims=True)
    variance = lax.square(offset).mean(axis, keepdims=True)
    scale = context.layout.along(axis, weights["weight"], x)
    bias = context.layout.along(axis, weights["bias"], x)
    normalised = offset * lax.rsqrt(variance + op.epsilon)
    return (normalised * scale + bias).astype(x.dtype)


def relu(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return jax.nn.relu(x)


def scale(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return x * op.factor


def sigmoid(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return jax.nn.sigmoid(x)


def slice_(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    axis = context.layout.axis(-1, layer.shape)
    return lax.slice_in_dim(x, op.start, op.stop, axis=axis)


def tanh(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return jnp.tanh(x)


OPS: dict[str, Callable[..., Array]] = {
    "add": add,
    "concat": concat,
    "dense": dense,
    "dropout": dropout,
    "flatten": flatten,
    "gelu": gelu,
    "layer_norm": layer_norm,
    "relu": relu,
    "scale": scale,
    "sigmoid": sigmoid,
    "slice": slice_,
    "tanh": tanh,
}
