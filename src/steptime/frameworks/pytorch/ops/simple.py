"""Lines for kinds that know no place and no time."""

from __future__ import annotations

from steptime.frameworks.pytorch.ops.call_site import Site


def add(site: Site) -> str:
    if site.overwrites is None:
        return f"{site.inputs[0]} + {site.inputs[1]}"
    return f"{site.inputs[site.overwrites]}.add_({site.inputs[1 - site.overwrites]})"


def concat(site: Site) -> str:
    axis = site.kind.axis % len(site.layer.shape) + 1  # the batch comes first
    return f"cat(({', '.join(site.inputs)}), {axis})"


def dense(site: Site) -> str:
    return f"linear({site.inputs[0]}, {site.weights['weight']}, {site.weights.get('bias')})"


def dropout(site: Site) -> str:
    return f"dropout({site.inputs[0]}, {site.kind.rate}, dropping)"


def flatten(site: Site) -> str:
    return f"{site.inputs[0]}.flatten(1)"


def gelu(site: Site) -> str:
    return f'gelu({site.inputs[0]}, approximate="{"tanh" if site.kind.tanh else "none"}")'


def layer_norm(site: Site) -> str:
    parts = f"{site.weights['weight']}, {site.weights['bias']}"
    return f"layer_norm({site.inputs[0]}, ({site.layer.shape[-1]},), {parts}, {site.kind.epsilon})"


def relu(site: Site) -> str:
    return f"{'relu' if site.overwrites is None else 'relu_'}({site.inputs[0]})"


def scale(site: Site) -> str:
    return f"{site.inputs[0]} * {site.kind.factor!r}"


def sigmoid(site: Site) -> str:
    return f"sigmoid({site.inputs[0]})"


def slice_(site: Site) -> str:
    if site.sizes:
        return f"split({site.inputs[0]}, {site.sizes}, -1)"
    return f"narrow({site.inputs[0]}, -1, {site.kind.start}, {site.kind.stop - site.kind.start})"


def tanh(site: Site) -> str:
    return f"tanh({site.inputs[0]})"
