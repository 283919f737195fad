"""Expressions for ops on tokens and sequences."""

from __future__ import annotations

import numpy as np

from steptime.frameworks.pytorch.ops.call_site import CallSite


def attention(site: CallSite) -> str:
    steps, features = site.layer.shape
    by_head = []
    for x, (input_steps, _) in zip(site.inputs, site.layer.input_shapes, strict=True):
        shape = f"-1, {input_steps}, {site.op.heads}, {features // site.op.heads}"
        by_head.append(f"{x}.view({shape}).transpose(1, 2)")
    settings = f"None, 0.0, {site.op.causal}, scale={site.op.scale_for(features)!r}"
    inner = f"attend({', '.join(by_head)}, {settings})"
    return f"{inner}.transpose(1, 2).reshape(-1, {steps}, {features})"


def embedding(site: CallSite) -> str:
    return f"embedding({site.weights['weight']}, {site.inputs[0]})"


def gru(site: CallSite) -> str:
    """PyTorch's second bias has three gates; those of reset and update are fixed to 0."""
    zero = site.constant("zero_bias", np.zeros(2 * site.op.units, np.float32))
    return _recurrent(site, "gru", f"cat(({zero}, {site.weights['bias_hidden']}))", states=1)


def lstm(site: CallSite) -> str:
    return _recurrent(site, "lstm", _zero_bias(site, 4), states=2)


def positions(site: CallSite) -> str:
    return f"{site.inputs[0]} + {site.weights['weight']}"


def rnn(site: CallSite) -> str:
    function = "rnn_relu" if site.op.relu else "rnn_tanh"
    return _recurrent(site, function, _zero_bias(site, 1), states=1)


def tied_dense(site: CallSite) -> str:
    return f"linear({site.inputs[0]}, {site.weights['weight']}, None)"


def _zero_bias(site: CallSite, gates: int) -> str:
    """cuDNN has two biases; the second is a zero that is never trained."""
    return site.constant("zero_bias", np.zeros(gates * site.op.units, np.float32))


def _recurrent(site: CallSite, function: str, second_bias: str, states: int) -> str:
    x = site.inputs[0]
    own_weights = [site.weights[role] for role in ("weight_input", "weight_hidden", "bias")]
    weights = ", ".join([*own_weights, second_bias])
    zeros = f"{x}.new_zeros(1, {x}.shape[0], {site.op.units})"
    state = zeros if states == 1 else f"[{zeros}] * {states}"
    return f"{function}({x}, {state}, ({weights}), True, 1, 0.0, training, False, True)[0]"
