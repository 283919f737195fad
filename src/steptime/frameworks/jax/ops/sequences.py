"""Tokens, attention and cells over time.

A cell's inputs are multiplied all at once; only what depends on the state is left for the loop over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from steptime.frameworks.jax.context import Array, LoweringContext, Weights
from steptime.graph import Layer


def attention(layer: Layer, weights: Weights, context: LoweringContext, *inputs: Array) -> Array:
    op: Any = layer.op
    query, keys, values = (x.reshape(*x.shape[:2], op.heads, -1) for x in inputs)
    exact = jnp.promote_types(query.dtype, jnp.float32)
    scores = op.scale_for(layer.shape[-1]) * jnp.einsum(
        "bqhf,bkhf->bhqk", query, keys, preferred_element_type=exact
    )
    if op.causal:
        seen = jnp.tri(scores.shape[-1], dtype=bool)
        scores = jnp.where(seen, scores, -jnp.inf)
    shares = jax.nn.softmax(scores).astype(values.dtype)
    return jnp.einsum("bhqk,bkhf->bqhf", shares, values).reshape(inputs[0].shape)


def embedding(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array, lender: Array = None
) -> Array:
    return jnp.take(
        weights["weight"], x, axis=0, mode="clip"
    )  # tokens are in range; the default looks after each


def tied_dense(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array, lender: Array
) -> Array:
    return x @ weights["weight"].T


def positions(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    return x + weights["weight"]


def lstm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    of_hidden = weights["weight_hidden"]

    def move(state: tuple[Array, Array], arrived: Array) -> tuple[tuple[Array, Array], Array]:
        hidden, cell = state
        entry, forget, candidate, exit_ = jnp.split(arrived + hidden @ of_hidden, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(entry) * jnp.tanh(candidate)
        hidden = jax.nn.sigmoid(exit_) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zero = _zero(layer, x)
    return _over_time(move, (zero, zero), weights, context, x)


def gru(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    of_hidden, bias = weights["weight_hidden"], weights["bias_hidden"]

    def move(hidden: Array, arrived: Array) -> tuple[Array, Array]:
        (a_reset, a_update, a_candidate), (b_reset, b_update, b_candidate) = (
            jnp.split(product, 3, axis=-1) for product in (arrived, hidden @ of_hidden)
        )
        reset, update = jax.nn.sigmoid(a_reset + b_reset), jax.nn.sigmoid(a_update + b_update)
        candidate = jnp.tanh(a_candidate + reset * (b_candidate + bias))
        hidden = (1 - update) * candidate + update * hidden
        return hidden, hidden

    return _over_time(move, _zero(layer, x), weights, context, x)


def rnn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    of_hidden, activation = weights["weight_hidden"], jax.nn.relu if op.relu else jnp.tanh

    def move(hidden: Array, arrived: Array) -> tuple[Array, Array]:
        hidden = activation(arrived + hidden @ of_hidden)
        return hidden, hidden

    return _over_time(move, _zero(layer, x), weights, context, x)


def _over_time(
    move: Callable[..., Any], start: Any, weights: Weights, context: LoweringContext, x: Array
) -> Array:
    arriving = context.shifted(x.swapaxes(0, 1) @ weights["weight_input"], weights["bias"])
    return lax.scan(move, start, arriving)[1].swapaxes(0, 1)


def _zero(layer: Layer, x: Array) -> Array:
    return jnp.zeros((len(x), layer.shape[-1]), x.dtype)


OPS: dict[str, Callable[..., Array]] = {
    **{
        compute.__name__: compute
        for compute in (attention, embedding, gru, lstm, positions, rnn, tied_dense)
    },
    "tied_embedding": embedding,
}
