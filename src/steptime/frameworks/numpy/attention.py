"""Tokens to vectors and back, places in time, and attention between sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.numpy.context import Array, Back, Slopes, Walk, outer, times
from steptime.graph import Layer


def embedding(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    def back(slope: Array) -> Slopes:
        total = np.zeros_like(weights["weight"])
        np.add.at(total, x, slope)  # a token may occur more than once
        return [None], {"weight": total}

    return weights["weight"][x], back


def tied_embedding(
    layer: Layer, weights: dict[str, Array], walk: Walk, x: Array, _: Array
) -> tuple[Array, Back]:
    y, back = embedding(layer, weights, walk, x)
    return y, lambda slope: ([None, None], back(slope)[1])


def tied_dense(
    layer: Layer, weights: dict[str, Array], walk: Walk, x: Array, _: Array
) -> tuple[Array, Back]:
    weight = weights["weight"]

    def back(slope: Array) -> Slopes:
        return [times(slope, weight), None], {"weight": outer(slope, x)}

    return times(x, weight.T), back


def positions(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    return x + weights["weight"], lambda slope: ([slope], {"weight": slope.sum(axis=0)})


def attention(
    layer: Layer, weights: dict[str, Array], walk: Walk, *inputs: Array
) -> tuple[Array, Back]:
    kind: Any = layer.kind
    query, keys, values = (_split(x, kind.heads) for x in inputs)
    scale = kind.scale_for(inputs[0].shape[-1])
    scores = walk.rounded(scale * query @ _turned(keys))
    if kind.causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = walk.rounded(shares / shares.sum(axis=-1, keepdims=True))

    def back(slope: Array) -> Slopes:
        above = _split(slope, kind.heads)
        of_shares = above @ _turned(values)
        of_scores = walk.rounded(
            scale * shares * (of_shares - (of_shares * shares).sum(axis=-1, keepdims=True))
        )
        slopes = (of_scores @ keys, _turned(of_scores) @ query, _turned(shares) @ above)
        return [_joined(inner) for inner in slopes], {}

    return _joined(shares @ values), back


def _split(x: Array, heads: int) -> Array:
    """(batch, time, features) to (batch, head, time, features of the head)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def _joined(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3).reshape(len(x), x.shape[2], -1)


def _turned(x: Array) -> Array:
    return x.swapaxes(-1, -2)
