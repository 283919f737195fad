"""Gated recurrent units and the plain recurrent layer over time, and back through them."""

from __future__ import annotations

import numpy as np

from steptime.frameworks.numpy.context import Array, Back, Gradients, LoweringContext, outer, times
from steptime.graph import Layer


def rnn(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    relu, of_hidden = layer.op.settings()["relu"], weights["weight_hidden"]
    entries = _entries(weights, x)
    hidden = np.zeros((len(entries) + 1, *entries.shape[1:]), x.dtype)
    for t, entry in enumerate(entries):
        inner = entry + hidden[t] @ of_hidden.T
        hidden[t + 1] = context.rounded(np.maximum(inner, 0) if relu else np.tanh(inner))

    def back(gradient: Array) -> Gradients:
        steep = hidden[1:] > 0 if relu else 1 - hidden[1:] ** 2
        inner, later = np.zeros_like(entries), np.zeros_like(entries[0])
        for t in reversed(range(len(entries))):
            inner[t] = (gradient[:, t] + later) * steep[t]
            later = context.rounded(inner[t] @ of_hidden)
        return _to_input(weights, inner), {
            **_of_input(x, inner),
            "weight_hidden": outer(inner, hidden[:-1]),
        }

    return hidden[1:].transpose(1, 0, 2), back


def gru(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    of_hidden, of_bias = weights["weight_hidden"], weights["bias_hidden"]
    entries = _entries(weights, x)
    hidden = np.zeros((len(entries) + 1, len(x), of_hidden.shape[1]), x.dtype)
    gates = np.zeros(
        (len(entries), 4, *hidden.shape[1:]), x.dtype
    )  # reset, update, candidate, the state's part of that
    for t, entry in enumerate(entries):
        (in_reset, in_update, in_new), (by_reset, by_update, by_new) = (
            np.split(side, 3, axis=1) for side in (entry, hidden[t] @ of_hidden.T)
        )
        reset, update, memory = (
            _sigmoid(in_reset + by_reset),
            _sigmoid(in_update + by_update),
            by_new + of_bias,
        )
        gates[t] = context.rounded(
            np.stack([reset, update, np.tanh(in_new + reset * memory), memory])
        )
        hidden[t + 1] = context.rounded((1 - gates[t, 1]) * gates[t, 2] + gates[t, 1] * hidden[t])

    def back(gradient: Array) -> Gradients:
        inner, of_memory = _gru_through_time(
            gradient.transpose(1, 0, 2), (gates, hidden), of_hidden, context
        )
        states = np.concatenate([inner[..., : -of_hidden.shape[1]], of_memory], axis=-1)
        found = {
            "weight_hidden": outer(states, hidden[:-1]),
            "bias_hidden": of_memory.sum(axis=(0, 1)),
        }
        return _to_input(weights, inner), {**_of_input(x, inner), **found}

    return hidden[1:].transpose(1, 0, 2), back


def _gru_through_time(
    gradient: Array, kept: tuple[Array, Array], of_hidden: Array, context: LoweringContext
) -> tuple[Array, Array]:
    """Gradients before the squashing, for every step, and those of the state's part of the candidate."""
    gates, hidden = kept
    inner = np.zeros((*gradient.shape[:2], 3 * gradient.shape[2]), gradient.dtype)
    of_memory, later = np.zeros_like(gradient), np.zeros_like(gradient[0])
    for t in reversed(range(len(gradient))):
        reset, update, new, memory = gates[t]
        of_h = gradient[t] + later
        of_new = of_h * (1 - update) * (1 - new**2)
        of_update = of_h * (hidden[t] - new) * update * (1 - update)
        of_reset = of_new * memory * reset * (1 - reset)
        inner[t], of_memory[t] = (
            np.concatenate([of_reset, of_update, of_new], axis=1),
            of_new * reset,
        )
        later = context.rounded(
            of_h * update + np.concatenate([of_reset, of_update, of_memory[t]], axis=1) @ of_hidden
        )
    return inner, of_memory


def _entries(weights: dict[str, Array], x: Array) -> Array:
    """What the inputs add at every step: time first."""
    return times(x.transpose(1, 0, 2), weights["weight_input"].T) + weights["bias"]


def _to_input(weights: dict[str, Array], inner: Array) -> list[Array]:
    return [times(inner, weights["weight_input"]).transpose(1, 0, 2)]


def _of_input(x: Array, inner: Array) -> dict[str, Array]:
    return {"weight_input": outer(inner, x.transpose(1, 0, 2)), "bias": inner.sum(axis=(0, 1))}


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(x / 2))
