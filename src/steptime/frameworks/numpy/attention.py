"""Embeddings, positions in time, and attention between sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.numpy.context import (
    Array,
    Gradients,
    LoweringContext,
    Result,
    Weights,
    matrix_gradient,
    multiply_rows,
)
from steptime.graph import Layer


def embedding(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    weight = weights["weight"]

    def backward(gradient: Array) -> Gradients:
        total = np.zeros_like(weight)
        # Not `total[x] += gradient`, which would count a repeated token once.
        np.add.at(total, x, gradient)
        return [None], {"weight": total}

    return weight[x], backward


def tied_embedding(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array, _: Array
) -> Result:
    y, embedding_backward = embedding(layer, weights, context, x)

    def backward(gradient: Array) -> Gradients:
        _, of_weights = embedding_backward(gradient)
        return [None, None], of_weights

    return y, backward


def tied_dense(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array, _: Array
) -> Result:
    weight = weights["weight"]

    def backward(gradient: Array) -> Gradients:
        of_input = multiply_rows(gradient, weight)
        return [of_input, None], {"weight": matrix_gradient(gradient, x)}

    return multiply_rows(x, weight.T), backward


def positions(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    def backward(gradient: Array) -> Gradients:
        return [gradient], {"weight": gradient.sum(axis=0)}

    return x + weights["weight"], backward


def attention(layer: Layer, weights: Weights, context: LoweringContext, *inputs: Array) -> Result:
    op: Any = layer.op
    query, keys, values = (_split_heads(x, op.heads) for x in inputs)
    scale = op.scale_for(inputs[0].shape[-1])
    scores = context.round(scale * query @ _transpose(keys))
    if op.causal:
        visible = np.tri(scores.shape[-1], dtype=bool)
        scores = np.where(visible, scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = context.round(shares / shares.sum(axis=-1, keepdims=True))

    def backward(gradient: Array) -> Gradients:
        of_output = _split_heads(gradient, op.heads)
        of_shares = of_output @ _transpose(values)
        mean = (of_shares * shares).sum(axis=-1, keepdims=True)
        of_scores = context.round(scale * shares * (of_shares - mean))
        of_query = of_scores @ keys
        of_keys = _transpose(of_scores) @ query
        of_values = _transpose(shares) @ of_output
        return [_join_heads(of_query), _join_heads(of_keys), _join_heads(of_values)], {}

    return _join_heads(shares @ values), backward


def _split_heads(x: Array, heads: int) -> Array:
    """(batch, time, features) to (batch, head, time, features of the head)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def _join_heads(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3).reshape(len(x), x.shape[2], -1)


def _transpose(x: Array) -> Array:
    return x.swapaxes(-1, -2)
