"""Long short-term memory over time, and back through it."""

from __future__ import annotations

import numpy as np

from steptime.frameworks.numpy.context import Array, Back, Gradients, LoweringContext, outer, times
from steptime.graph import Layer


def lstm(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    batch, steps, _ = x.shape
    of_input, of_hidden = weights["weight_input"], weights["weight_hidden"]
    hidden = np.zeros((steps + 1, batch, of_hidden.shape[1]), x.dtype)
    cell = np.zeros_like(hidden)
    gates = context.rounded(times(x.transpose(1, 0, 2), of_input.T) + weights["bias"])
    for t in range(steps):
        gates[t] = context.rounded(_squash(context.rounded(gates[t] + hidden[t] @ of_hidden.T)))
        entry, forget, candidate, exit_ = np.split(gates[t], 4, axis=1)
        cell[t + 1] = context.rounded(forget * cell[t] + entry * candidate)
        hidden[t + 1] = context.rounded(exit_ * np.tanh(cell[t + 1]))

    def back(gradient: Array) -> Gradients:
        gradients = _through_time(gradient.transpose(1, 0, 2), (gates, cell), of_hidden, context)
        found = {
            "weight_input": outer(gradients, x.transpose(1, 0, 2)),
            "weight_hidden": outer(gradients, hidden[:-1]),
        }
        return [times(gradients, of_input).transpose(1, 0, 2)], {
            **found,
            "bias": gradients.sum(axis=(0, 1)),
        }

    return hidden[1:].transpose(1, 0, 2), back


def _squash(gates: Array) -> Array:
    entry, forget, candidate, exit_ = np.split(gates, 4, axis=1)
    sigmoid = [0.5 * (1 + np.tanh(gate / 2)) for gate in (entry, forget, exit_)]
    return np.concatenate([sigmoid[0], sigmoid[1], np.tanh(candidate), sigmoid[2]], axis=1)


def _through_time(
    gradient: Array, kept: tuple[Array, Array], of_hidden: Array, context: LoweringContext
) -> Array:
    """Gradients before the squashing, for every step: each is the loss's own and what comes back from the next."""
    gates, cell = kept
    found = np.zeros_like(gates)
    to_hidden, to_cell = np.zeros_like(cell[0]), np.zeros_like(cell[0])
    for t in reversed(range(len(gates))):
        entry, forget, candidate, exit_ = np.split(gates[t], 4, axis=1)
        bent = np.tanh(cell[t + 1])
        of_h = gradient[t] + to_hidden
        of_c = to_cell + of_h * exit_ * (1 - bent * bent)
        inner = [
            of_c * candidate * entry * (1 - entry),
            of_c * cell[t] * forget * (1 - forget),
            of_c * entry * (1 - candidate * candidate),
            of_h * bent * exit_ * (1 - exit_),
        ]
        found[t] = context.rounded(np.concatenate(inner, axis=1))
        to_hidden, to_cell = context.rounded(found[t] @ of_hidden), context.rounded(of_c * forget)
    return found
