"""Gated recurrent units and the plain recurrent layer, forward and backward through time."""

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


def rnn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    relu = layer.op.settings()["relu"]
    weight_hidden = weights["weight_hidden"]
    entries = _entries(weights, x)
    hidden = np.zeros((len(entries) + 1, *entries.shape[1:]), x.dtype)
    for t, entry in enumerate(entries):
        inner = entry + hidden[t] @ weight_hidden.T
        activated = np.maximum(inner, 0) if relu else np.tanh(inner)
        hidden[t + 1] = context.round(activated)

    def backward(gradient: Array) -> Gradients:
        derivative = hidden[1:] > 0 if relu else 1 - hidden[1:] ** 2
        of_inner = np.zeros_like(entries)
        from_next = np.zeros_like(entries[0])
        for t in reversed(range(len(entries))):
            of_inner[t] = (gradient[:, t] + from_next) * derivative[t]
            from_next = context.round(of_inner[t] @ weight_hidden)
        of_weights = _entry_gradients(x, of_inner)
        of_weights["weight_hidden"] = matrix_gradient(of_inner, hidden[:-1])
        return _input_gradient(weights, of_inner), of_weights

    return hidden[1:].transpose(1, 0, 2), backward


def gru(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    weight_hidden = weights["weight_hidden"]
    units = weight_hidden.shape[1]
    entries = _entries(weights, x)
    hidden = np.zeros((len(entries) + 1, len(x), units), x.dtype)
    # Reset, update, candidate, and the state's contribution to the candidate.
    gates = np.zeros((len(entries), 4, *hidden.shape[1:]), x.dtype)
    for t, entry in enumerate(entries):
        from_state = hidden[t] @ weight_hidden.T
        gates[t] = context.round(_gru_gates(entry, from_state, weights["bias_hidden"]))
        _, update, candidate, _ = gates[t]
        mixed = (1 - update) * candidate + update * hidden[t]
        hidden[t + 1] = context.round(mixed)

    def backward(gradient: Array) -> Gradients:
        of_output = gradient.transpose(1, 0, 2)
        of_gates, of_memory = _gru_gradients(of_output, gates, hidden, weight_hidden, context)
        of_reset_and_update = of_gates[..., :-units]
        of_states = np.concatenate([of_reset_and_update, of_memory], axis=-1)
        of_weights = _entry_gradients(x, of_gates)
        of_weights["weight_hidden"] = matrix_gradient(of_states, hidden[:-1])
        of_weights["bias_hidden"] = of_memory.sum(axis=(0, 1))
        return _input_gradient(weights, of_gates), of_weights

    return hidden[1:].transpose(1, 0, 2), backward


def _gru_gates(entry: Array, from_state: Array, bias_hidden: Array) -> Array:
    """Reset, update, candidate, and the state's contribution to the candidate."""
    entry_reset, entry_update, entry_new = np.split(entry, 3, axis=1)
    state_reset, state_update, state_new = np.split(from_state, 3, axis=1)
    reset = sigmoid(entry_reset + state_reset)
    update = sigmoid(entry_update + state_update)
    memory = state_new + bias_hidden
    candidate = np.tanh(entry_new + reset * memory)
    return np.stack([reset, update, candidate, memory])


def _gru_gradients(
    of_output: Array, gates: Array, hidden: Array, weight_hidden: Array, context: LoweringContext
) -> tuple[Array, Array]:
    """Gradients before the activations for every step, and those of the state's contribution."""
    steps, batch, units = of_output.shape
    of_gates = np.zeros((steps, batch, 3 * units), of_output.dtype)
    of_memory = np.zeros_like(of_output)
    from_next = np.zeros_like(of_output[0])
    for t in reversed(range(steps)):
        reset, update, candidate, memory = gates[t]
        of_hidden = of_output[t] + from_next
        of_candidate = of_hidden * (1 - update) * (1 - candidate**2)
        of_update = of_hidden * (hidden[t] - candidate) * update * (1 - update)
        of_reset = of_candidate * memory * reset * (1 - reset)
        of_gates[t] = np.concatenate([of_reset, of_update, of_candidate], axis=1)
        of_memory[t] = of_candidate * reset
        of_state = np.concatenate([of_reset, of_update, of_memory[t]], axis=1)
        from_next = context.round(of_hidden * update + of_state @ weight_hidden)
    return of_gates, of_memory


def _entries(weights: Weights, x: Array) -> Array:
    """What the inputs add at every step, time first."""
    return multiply_rows(x.transpose(1, 0, 2), weights["weight_input"].T) + weights["bias"]


def _input_gradient(weights: Weights, of_entries: Array) -> list[Array]:
    return [multiply_rows(of_entries, weights["weight_input"]).transpose(1, 0, 2)]


def _entry_gradients(x: Array, of_entries: Array) -> Weights:
    of_weight = matrix_gradient(of_entries, x.transpose(1, 0, 2))
    return {"weight_input": of_weight, "bias": of_entries.sum(axis=(0, 1))}
