"""Lines for ops that work on tokens and sequences."""

from __future__ import annotations

import numpy as np

from steptime.frameworks.pytorch.ops.call_site import CallSite


def attention(site: CallSite) -> str:
    features = site.layer.shape[1]
    heads = site.op.heads
    query, keys, values = (
        f"{x}.view(-1, {time}, {heads}, {features // heads}).transpose(1, 2)"
        for x, (time, _) in zip(site.inputs, site.layer.input_shapes, strict=True)
    )
    scale = site.op.scale_for(features)
    inner = f"attend({query}, {keys}, {values}, None, 0.0, {site.op.causal}, scale={scale!r})"
    return f"{inner}.transpose(1, 2).reshape(-1, {site.layer.shape[0]}, {features})"


def embedding(site: CallSite) -> str:
    return f"embedding({site.weights['weight']}, {site.inputs[0]})"


def gru(site: CallSite) -> str:
    """The library's second bias has three parts, of which two would only add to the first bias."""
    zero = site.constant("zero_bias", np.zeros(2 * site.op.units, np.float32))
    return _recurrent(site, "gru", f"cat(({zero}, {site.weights['bias_hidden']}))", states=1)


def lstm(site: CallSite) -> str:
    return _recurrent(site, "lstm", _no_bias(site, 4), states=2)


def positions(site: CallSite) -> str:
    return f"{site.inputs[0]} + {site.weights['weight']}"


def rnn(site: CallSite) -> str:
    return _recurrent(site, "rnn_relu" if site.op.relu else "rnn_tanh", _no_bias(site, 1), states=1)


def tied_dense(site: CallSite) -> str:
    return f"linear({site.inputs[0]}, {site.weights['weight']}, None)"


tied_embedding = embedding


def _no_bias(site: CallSite, gates: int) -> str:
    """cuDNN has two biases; the second is a zero that is never trained."""
    return site.constant("zero_bias", np.zeros(gates * site.op.units, np.float32))


def _recurrent(site: CallSite, call: str, second_bias: str, states: int) -> str:
    x = site.inputs[0]
    weights = ", ".join(
        [*(site.weights[part] for part in ("weight_input", "weight_hidden", "bias")), second_bias]
    )
    zeros = f"{x}.new_zeros(1, {x}.shape[0], {site.op.units})"
    state = zeros if states == 1 else f"[{zeros}] * {states}"
    return f"{call}({x}, {state}, ({weights}), True, 1, 0.0, training, False, True)[0]"
