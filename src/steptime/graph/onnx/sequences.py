"""Tokens, attention and cells over time, in ONNX.

Cells get time first, because that is the one layout all readers have, and their gates in ONNX's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from steptime.graph.onnx.call_site import CallSite
from steptime.graph.onnx.simple import product

LSTM_GATES = (
    0,
    3,
    1,
    2,
)  # ours are input, forget, candidate, output; ONNX wants input, output, forget, candidate
GRU_GATES = (1, 0, 2)  # ours are reset, update, candidate; ONNX wants update, reset, candidate


def attention(site: CallSite) -> None:
    query, keys, values = site.layer.inputs
    features, causal = site.layer.shape[-1], site.op.causal
    scaled = site.add(
        "Mul", query, site.floats("scale", site.op.scale_for(features)), part="scaled"
    )
    turned = _heads(site, keys, "keys", (0, 2, 3, 1))
    scores = site.add("MatMul", _heads(site, scaled, "query", (0, 2, 1, 3)), turned, part="scores")
    if causal:
        unseen = np.triu(np.full((site.layer.shape[0],) * 2, -np.inf), 1)
        scores = site.add("Add", scores, site.floats("mask", unseen), part="masked")
    shares = site.add("Softmax", scores, part="shares", axis=-1)
    mixed = site.add("MatMul", shares, _heads(site, values, "values", (0, 2, 1, 3)), part="mixed")
    beside = site.add("Transpose", mixed, part="beside", perm=(0, 2, 1, 3))
    site.add("Reshape", beside, site.integers("joined", [0, 0, features]))


def _heads(site: CallSite, x: str, part: str, order: Sequence[int]) -> str:
    """(batch, time, features) to (batch, time, head, feature), in this order."""
    shape = site.integers(
        f"{part}_shape", [0, 0, site.op.heads, site.layer.shape[-1] // site.op.heads]
    )
    return site.add(
        "Transpose", site.add("Reshape", x, shape, part=f"{part}_cut"), part=part, perm=order
    )


def embedding(site: CallSite) -> None:
    site.add("Gather", site.weight("weight"), site.x)


def tied_dense(site: CallSite) -> None:
    product(site, [])


def positions(site: CallSite) -> None:
    site.add("Add", site.x, site.weight("weight"))


def lstm(site: CallSite) -> None:
    _cell(site, "LSTM", LSTM_GATES, [_zeros(site, 4)])


def gru(site: CallSite) -> None:
    """With the reset behind the product, as cuDNN has it; of its second biases only the candidate's is one of ours."""
    own = site.add(
        "Unsqueeze", site.weight("bias_hidden"), site.integers("front", [0]), part="candidate_bias"
    )
    _cell(site, "GRU", GRU_GATES, [_zeros(site, 2), own], linear_before_reset=1)


def rnn(site: CallSite) -> None:
    _cell(site, "RNN", (0,), [_zeros(site, 1)], activations=["Relu" if site.op.relu else "Tanh"])


def _cell(
    site: CallSite, operator: str, gates: Sequence[int], second_bias: list[str], **attributes: Any
) -> None:
    """`second_bias`: ONNX has one on the input's product and one on the state's."""
    units = site.op.units
    rows = np.concatenate([np.arange(gate * units, (gate + 1) * units) for gate in gates])
    order = site.integers(
        "gate_order", rows[None]
    )  # two axes, so that Gather puts ONNX's axis of directions in front
    own = [
        site.add("Gather", site.weight(part), order, part=f"{part}_ordered")
        for part in ("weight_input", "weight_hidden", "bias")
    ]
    biases = site.add("Concat", own.pop(), *second_bias, part="biases", axis=1)
    sequence = site.add("Transpose", site.x, part="time_first", perm=(1, 0, 2))
    hidden = site.add(
        operator, sequence, *own, biases, part="hidden", hidden_size=units, **attributes
    )
    single = site.add("Squeeze", hidden, site.integers("directions", [1]), part="single")
    site.add("Transpose", single, perm=(1, 0, 2))


def _zeros(site: CallSite, gates: int) -> str:
    return site.floats("zero_bias", np.zeros((1, gates * site.op.units)))


OPS: dict[str, Callable[[CallSite], None]] = {
    **{
        write.__name__: write
        for write in (attention, embedding, gru, lstm, positions, rnn, tied_dense)
    },
    "tied_embedding": embedding,
}
