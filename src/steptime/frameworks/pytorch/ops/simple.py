"""Expressions for ops that do not depend on position or time."""

from __future__ import annotations

from steptime.frameworks.pytorch.ops.call_site import CallSite


def add(site: CallSite) -> str:
    if site.overwrites is None:
        return f"{site.inputs[0]} + {site.inputs[1]}"
    return f"{site.inputs[site.overwrites]}.add_({site.inputs[1 - site.overwrites]})"


def concat(site: CallSite) -> str:
    # The batch comes first.
    axis = site.op.axis % len(site.layer.shape) + 1
    return f"cat(({', '.join(site.inputs)}), {axis})"


def dense(site: CallSite) -> str:
    return f"linear({site.inputs[0]}, {site.weights['weight']}, {site.weights.get('bias')})"


def dropout(site: CallSite) -> str:
    return f"dropout({site.inputs[0]}, {site.op.rate}, dropping)"


def flatten(site: CallSite) -> str:
    return f"{site.inputs[0]}.flatten(1)"


def gelu(site: CallSite) -> str:
    approximate = "tanh" if site.op.tanh else "none"
    return f'gelu({site.inputs[0]}, approximate="{approximate}")'


def layer_norm(site: CallSite) -> str:
    shape = f"({site.layer.shape[-1]},)"
    weights = f"{site.weights['weight']}, {site.weights['bias']}"
    return f"layer_norm({site.inputs[0]}, {shape}, {weights}, {site.op.epsilon})"


def relu(site: CallSite) -> str:
    function = "relu" if site.overwrites is None else "relu_"
    return f"{function}({site.inputs[0]})"


def scale(site: CallSite) -> str:
    return f"{site.inputs[0]} * {site.op.factor!r}"


def sigmoid(site: CallSite) -> str:
    return f"sigmoid({site.inputs[0]})"


def slice_(site: CallSite) -> str:
    # Several slices that cover a tensor are one split.
    if site.sizes:
        return f"split({site.inputs[0]}, {site.sizes}, -1)"
    return f"narrow({site.inputs[0]}, -1, {site.op.start}, {site.op.stop - site.op.start})"


def tanh(site: CallSite) -> str:
    return f"tanh({site.inputs[0]})"
