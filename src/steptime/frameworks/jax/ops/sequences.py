"""Tokens, attention and recurrent layers.

The inputs of all time steps are multiplied at once; only what depends on the state stays in the
loop over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from steptime.frameworks.jax.context import Array, LoweringContext, Weights
from steptime.graph import Layer

# What cuDNN's fused attention takes on every GPU that has it: precisions, and features of a head.
CUDNN_DTYPES = (jnp.bfloat16, jnp.float16)
CUDNN_MOST_FEATURES = 128
CUDNN_MULTIPLE = 8


def attention(layer: Layer, weights: Weights, context: LoweringContext, *inputs: Array) -> Array:
    op: Any = layer.op
    query, keys, values = (x.reshape(*x.shape[:2], op.heads, -1) for x in inputs)
    scale = op.scale_for(layer.shape[-1])
    if context.has_cudnn and _fits_cudnn(query):
        mixed = jax.nn.dot_product_attention(
            query, keys, values, scale=scale, is_causal=op.causal, implementation="cudnn"
        )
    else:
        mixed = _attend(query, keys, values, scale, causal=op.causal)
    return mixed.reshape(inputs[0].shape)


def _fits_cudnn(query: Array) -> bool:
    features = query.shape[-1]
    fits_features = features <= CUDNN_MOST_FEATURES and features % CUDNN_MULTIPLE == 0
    return fits_features and query.dtype in CUDNN_DTYPES


def _attend(query: Array, keys: Array, values: Array, scale: float, *, causal: bool) -> Array:
    """Not `dot_product_attention`, whose softmax for XLA is in fp32 even if the inputs are fp64."""
    # The softmax must not lose small scores to a low precision.
    score_dtype = jnp.promote_types(query.dtype, jnp.float32)
    products = jnp.einsum("bqhf,bkhf->bhqk", query, keys, preferred_element_type=score_dtype)
    scores = scale * products
    if causal:
        visible = jnp.tri(scores.shape[-1], dtype=bool)
        scores = jnp.where(visible, scores, -jnp.inf)
    shares = jax.nn.softmax(scores).astype(values.dtype)
    return jnp.einsum("bhqk,bkhf->bqhf", shares, values)


def embedding(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    # Tokens are always in range; the default mode would check each of them.
    return jnp.take(weights["weight"], x, axis=0, mode="clip")


def tied_dense(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return x @ weights["weight"].T


def positions(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return x + weights["weight"]


def lstm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    weight_hidden = weights["weight_hidden"]

    def move(state: tuple[Array, Array], projected: Array) -> tuple[tuple[Array, Array], Array]:
        hidden, cell = state
        gates = projected + hidden @ weight_hidden
        input_gate, forget_gate, candidate, output_gate = jnp.split(gates, 4, axis=-1)
        remembered = jax.nn.sigmoid(forget_gate) * cell
        cell = remembered + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
        hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = _zero_state(layer, x)
    return _scan(move, (zeros, zeros), weights, context, x)


def gru(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    weight_hidden = weights["weight_hidden"]
    bias = weights["bias_hidden"]

    def move(hidden: Array, projected: Array) -> tuple[Array, Array]:
        product = hidden @ weight_hidden
        of_input = jnp.split(projected, 3, axis=-1)
        of_hidden = jnp.split(product, 3, axis=-1)
        reset = jax.nn.sigmoid(of_input[0] + of_hidden[0])
        update = jax.nn.sigmoid(of_input[1] + of_hidden[1])
        candidate = jnp.tanh(of_input[2] + reset * (of_hidden[2] + bias))
        hidden = (1 - update) * candidate + update * hidden
        return hidden, hidden

    return _scan(move, _zero_state(layer, x), weights, context, x)


def rnn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    weight_hidden = weights["weight_hidden"]
    activation = jax.nn.relu if op.relu else jnp.tanh

    def move(hidden: Array, projected: Array) -> tuple[Array, Array]:
        hidden = activation(projected + hidden @ weight_hidden)
        return hidden, hidden

    return _scan(move, _zero_state(layer, x), weights, context, x)


def _scan(
    move: Callable[..., Any], start: Any, weights: Weights, context: LoweringContext, x: Array
) -> Array:
    projected = context.add_bias(x.swapaxes(0, 1) @ weights["weight_input"], weights["bias"])
    # `scan` loops over the first axis, so time is first here.
    _, outputs = lax.scan(move, start, projected)
    return outputs.swapaxes(0, 1)


def _zero_state(layer: Layer, x: Array) -> Array:
    return jnp.zeros((len(x), layer.shape[-1]), x.dtype)


OPS: dict[str, Callable[..., Array]] = {
    "attention": attention,
    "embedding": embedding,
    "gru": gru,
    "lstm": lstm,
    "positions": positions,
    "rnn": rnn,
    "tied_dense": tied_dense,
    "tied_embedding": embedding,
}
