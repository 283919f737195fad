"""Tokens to vectors and back, places in time, and attention between sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.numpy.context import Array, Back, Gradients, LoweringContext, outer, times
from steptime.graph import Layer


def embedding(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    def back(gradient: Array) -> Gradients:
        total = np.zeros_like(weights["weight"])
        np.add.at(total, x, gradient)  # a token may occur more than once
        return [None], {"weight": total}

    return weights["weight"][x], back


def tied_embedding(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array, _: Array
) -> tuple[Array, Back]:
    y, back = embedding(layer, weights, context, x)
    return y, lambda gradient: ([None, None], back(gradient)[1])


def tied_dense(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array, _: Array
) -> tuple[Array, Back]:
    weight = weights["weight"]

    def back(gradient: Array) -> Gradients:
        return [times(gradient, weight), None], {"weight": outer(gradient, x)}

    return times(x, weight.T), back


def positions(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    return x + weights["weight"], lambda gradient: ([gradient], {"weight": gradient.sum(axis=0)})


def attention(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, *inputs: Array
) -> tuple[Array, Back]:
    op: Any = layer.op
    query, keys, values = (_split(x, op.heads) for x in inputs)
    scale = op.scale_for(inputs[0].shape[-1])
    scores = context.rounded(scale * query @ _turned(keys))
    if op.causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = context.rounded(shares / shares.sum(axis=-1, keepdims=True))

    def back(gradient: Array) -> Gradients:
        above = _split(gradient, op.heads)
        of_shares = above @ _turned(values)
        of_scores = context.rounded(
            scale * shares * (of_shares - (of_shares * shares).sum(axis=-1, keepdims=True))
        )
        gradients = (of_scores @ keys, _turned(of_scores) @ query, _turned(shares) @ above)
        return [_joined(inner) for inner in gradients], {}

    return _joined(shares @ values), back


def _split(x: Array, heads: int) -> Array:
    """(batch, time, features) to (batch, head, time, features of the head)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def _joined(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3).reshape(len(x), x.shape[2], -1)


def _turned(x: Array) -> Array:
    return x.swapaxes(-1, -2)
