"""Tokens, attention and recurrent cells, in ONNX.

Cells get time first, because all runtimes have that layout, and their gates in ONNX's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from steptime.graph.onnx.call_site import CallSite
from steptime.graph.onnx.simple import product

# Ours are input, forget, candidate, output; ONNX has input, output, forget, candidate.
LSTM_GATES = (0, 3, 1, 2)
# Ours are reset, update, candidate; ONNX has update, reset, candidate.
GRU_GATES = (1, 0, 2)

BY_HEAD = (0, 2, 1, 3)
BY_HEAD_TRANSPOSED = (0, 2, 3, 1)
TIME_FIRST = (1, 0, 2)


def attention(site: CallSite) -> None:
    query, keys, values = site.layer.inputs
    steps, features = site.layer.shape
    scale = site.floats("scale", site.op.scale_for(features))
    scaled = site.add("Mul", query, scale, suffix="scaled")
    keys_by_head = _split_heads(site, keys, "keys", BY_HEAD_TRANSPOSED)
    query_by_head = _split_heads(site, scaled, "query", BY_HEAD)
    scores = site.add("MatMul", query_by_head, keys_by_head, suffix="scores")
    if site.op.causal:
        mask = np.triu(np.full((steps, steps), -np.inf), 1)
        scores = site.add("Add", scores, site.floats("mask", mask), suffix="masked")
    shares = site.add("Softmax", scores, suffix="shares", axis=-1)
    values_by_head = _split_heads(site, values, "values", BY_HEAD)
    mixed = site.add("MatMul", shares, values_by_head, suffix="mixed")
    by_time = site.add("Transpose", mixed, suffix="by_time", perm=BY_HEAD)
    site.add("Reshape", by_time, site.integers("joined", [0, 0, features]))


def _split_heads(site: CallSite, x: str, suffix: str, order: Sequence[int]) -> str:
    """(batch, time, features) to (batch, time, head, feature), in this order of axes."""
    heads = site.op.heads
    shape = site.integers(f"{suffix}_shape", [0, 0, heads, site.layer.shape[-1] // heads])
    split = site.add("Reshape", x, shape, suffix=f"{suffix}_split")
    return site.add("Transpose", split, suffix=suffix, perm=order)


def embedding(site: CallSite) -> None:
    site.add("Gather", site.weight("weight"), site.x)


def tied_dense(site: CallSite) -> None:
    product(site, [])


def positions(site: CallSite) -> None:
    site.add("Add", site.x, site.weight("weight"))


def lstm(site: CallSite) -> None:
    _cell(site, "LSTM", LSTM_GATES, [_zeros(site, 4)])


def gru(site: CallSite) -> None:
    """With the reset after the product, as in cuDNN.

    Of ONNX's second biases only the candidate's is a weight of ours."""
    front = site.integers("front", [0])
    bias = site.add("Unsqueeze", site.weight("bias_hidden"), front, suffix="candidate_bias")
    _cell(site, "GRU", GRU_GATES, [_zeros(site, 2), bias], linear_before_reset=1)


def rnn(site: CallSite) -> None:
    activation = "Relu" if site.op.relu else "Tanh"
    _cell(site, "RNN", (0,), [_zeros(site, 1)], activations=[activation])


def _cell(
    site: CallSite, operator: str, gates: Sequence[int], second_bias: list[str], **attributes: Any
) -> None:
    """`second_bias`: ONNX has one on the product of the input and one on that of the state."""
    units = site.op.units
    rows = np.concatenate([np.arange(gate * units, (gate + 1) * units) for gate in gates])
    # Two axes, so that Gather puts ONNX's axis of directions in front.
    order = site.integers("gate_order", rows[None])

    def reorder(role: str) -> str:
        return site.add("Gather", site.weight(role), order, suffix=f"{role}_ordered")

    weight_input = reorder("weight_input")
    weight_hidden = reorder("weight_hidden")
    bias = reorder("bias")
    biases = site.add("Concat", bias, *second_bias, suffix="biases", axis=1)
    sequence = site.add("Transpose", site.x, suffix="time_first", perm=TIME_FIRST)
    weights = (weight_input, weight_hidden, biases)
    hidden = site.add(
        operator, sequence, *weights, suffix="hidden", hidden_size=units, **attributes
    )
    single = site.add("Squeeze", hidden, site.integers("directions", [1]), suffix="single")
    site.add("Transpose", single, perm=TIME_FIRST)


def _zeros(site: CallSite, gates: int) -> str:
    return site.floats("zero_bias", np.zeros((1, gates * site.op.units)))


OPS: dict[str, Callable[[CallSite], None]] = {
    "attention": attention,
    "embedding": embedding,
    "gru": gru,
    "lstm": lstm,
    "positions": positions,
    "rnn": rnn,
    "tied_dense": tied_dense,
    "tied_embedding": embedding,
}
