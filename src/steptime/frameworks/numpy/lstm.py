"""Long short-term memory, forward and backward through time."""

from __future__ import annotations

import numpy as np

from steptime.frameworks.numpy.context import (
    Array,
    Gradients,
    LoweringContext,
    Result,
    Weights,
    matrix_gradient,
    multiply_rows,
    sigmoid,
)
from steptime.graph import Layer


def lstm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    batch, steps, _ = x.shape
    weight_input = weights["weight_input"]
    weight_hidden = weights["weight_hidden"]
    sequence = x.transpose(1, 0, 2)
    units = weight_hidden.shape[1]
    hidden = np.zeros((steps + 1, batch, units), x.dtype)
    cell = np.zeros_like(hidden)
    gates = context.round(multiply_rows(sequence, weight_input.T) + weights["bias"])
    for t in range(steps):
        before_activation = context.round(gates[t] + hidden[t] @ weight_hidden.T)
        gates[t] = context.round(_activate(before_activation))
        entry, forget, candidate, exit_ = np.split(gates[t], 4, axis=1)
        cell[t + 1] = context.round(forget * cell[t] + entry * candidate)
        hidden[t + 1] = context.round(exit_ * np.tanh(cell[t + 1]))

    def backward(gradient: Array) -> Gradients:
        of_hidden = gradient.transpose(1, 0, 2)
        of_gates = _gate_gradients(of_hidden, gates, cell, weight_hidden, context)
        of_weights = {
            "weight_input": matrix_gradient(of_gates, sequence),
            "weight_hidden": matrix_gradient(of_gates, hidden[:-1]),
            "bias": of_gates.sum(axis=(0, 1)),
        }
        return [multiply_rows(of_gates, weight_input).transpose(1, 0, 2)], of_weights

    return hidden[1:].transpose(1, 0, 2), backward


def _activate(gates: Array) -> Array:
    entry, forget, candidate, exit_ = np.split(gates, 4, axis=1)
    activated = [sigmoid(entry), sigmoid(forget), np.tanh(candidate), sigmoid(exit_)]
    return np.concatenate(activated, axis=1)


def _gate_gradients(
    of_output: Array, gates: Array, cell: Array, weight_hidden: Array, context: LoweringContext
) -> Array:
    """Gradients before the activations, for every step.

    Each step gets the gradient of the loss, and what comes back from the next step."""
    of_gates = np.zeros_like(gates)
    from_next_hidden = np.zeros_like(cell[0])
    from_next_cell = np.zeros_like(cell[0])
    for t in reversed(range(len(gates))):
        entry, forget, candidate, exit_ = np.split(gates[t], 4, axis=1)
        activated = np.tanh(cell[t + 1])
        of_hidden = of_output[t] + from_next_hidden
        of_cell = from_next_cell + of_hidden * exit_ * (1 - activated * activated)
        of_entry = of_cell * candidate * entry * (1 - entry)
        of_forget = of_cell * cell[t] * forget * (1 - forget)
        of_candidate = of_cell * entry * (1 - candidate * candidate)
        of_exit = of_hidden * activated * exit_ * (1 - exit_)
        joined = np.concatenate([of_entry, of_forget, of_candidate, of_exit], axis=1)
        of_gates[t] = context.round(joined)
        from_next_hidden = context.round(of_gates[t] @ weight_hidden)
        from_next_cell = context.round(of_cell * forget)
    return of_gates
