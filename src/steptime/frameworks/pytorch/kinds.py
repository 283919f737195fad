"""One function per kind of layer: the line of PyTorch code that computes it. A new kind is one entry in `KINDS`.

Only PyTorch's own builtins are called: their Python wrappers in `nn.functional` cost the host time on every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from steptime.graph import Layer
from steptime.graph.kinds import Pads

NAMES: dict[str, Any] = {
    "average_pool": torch._C._nn.avg_pool2d,
    "batch_norm": torch.batch_norm,
    "conv2d": torch.conv2d,
    "dropout": torch.dropout,
    "embedding": torch.embedding,
    "infinity": float("inf"),
    "linear": torch._C._nn.linear,
    "lstm": torch.lstm,
    "max_pool": torch.max_pool2d,
    "pad": torch.constant_pad_nd,
    "relu": torch.relu,
    "relu_": torch.relu_,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
"""What generated code may call."""


@dataclass
class Site:
    """Where a layer's line is written: what it may refer to."""

    layer: Layer
    output: str  # variables
    inputs: list[str]
    weights: dict[str, str]  # part -> the expression that reads it
    overwrites: int | None = None  # the input whose memory the result may take
    constants: dict[str, Any] = field(default_factory=dict)  # arrays that the line needs besides weights, by own name

    @property
    def kind(self) -> Any:
        return self.layer.kind

    def constant(self, part: str, value: Any) -> str:
        own = own_name(f"{self.layer.name}.{part}")
        self.constants[own] = value
        return f'b["{own}"]'


def own_name(canonical: str) -> str:
    """A module's weights can not have dots in their names."""
    return canonical.replace(".", "__")


def add(site: Site) -> str:
    if site.overwrites is None:
        return f"{site.inputs[0]} + {site.inputs[1]}"
    return f"{site.inputs[site.overwrites]}.add_({site.inputs[1 - site.overwrites]})"


def average_pool(site: Site) -> str:
    kind = site.kind
    if _fits_pool(kind.padding, kind.kernel):
        return f"average_pool({site.inputs[0]}, {_window(kind)}, {kind.ceil}, False)"
    # Padding by hand makes it part of the image, so the sum is divided by the true number of cells.
    pads = _exact_pads(site.layer)
    share = site.constant("share", 1 / _cells(site.layer, pads))
    whole = f"{kind.kernel}, {kind.stride}, (0, 0), False, True, 1"
    return f"average_pool({_padded(site.inputs[0], pads)}, {whole}).mul_({share})"


def batch_norm(site: Site) -> str:
    parts = ", ".join(site.weights[part] for part in ("weight", "bias", "running_mean", "running_variance"))
    return f"batch_norm({site.inputs[0]}, {parts}, training, {site.kind.momentum}, {site.kind.epsilon}, True)"


def conv(site: Site) -> str:
    kind, x = site.kind, site.inputs[0]
    (top, bottom), (left, right) = kind.padding
    padding = (top, left)
    if top != bottom or left != right:
        x, padding = _padded(x, kind.padding), (0, 0)
    weights = f"{site.weights['weight']}, {site.weights.get('bias')}"
    return f"conv2d({x}, {weights}, {kind.stride}, {padding}, {kind.dilation}, {kind.groups})"


def dense(site: Site) -> str:
    return f"linear({site.inputs[0]}, {site.weights['weight']}, {site.weights.get('bias')})"


def dropout(site: Site) -> str:
    return f"dropout({site.inputs[0]}, {site.kind.rate}, dropping)"


def embedding(site: Site) -> str:
    return f"embedding({site.weights['weight']}, {site.inputs[0]})"


def flatten(site: Site) -> str:
    return f"{site.inputs[0]}.flatten(1)"


def global_average_pool(site: Site) -> str:
    return f"{site.inputs[0]}.mean((2, 3))"


def lstm(site: Site) -> str:
    """cuDNN has two biases; the second is a zero that is never trained."""
    x, units = site.inputs[0], site.kind.units
    zero = site.constant("zero_bias", np.zeros(4 * units, np.float32))
    weights = ", ".join([*(site.weights[part] for part in ("weight_input", "weight_hidden", "bias")), zero])
    state = f"[{x}.new_zeros(1, {x}.shape[0], {units})] * 2"
    return f"lstm({x}, {state}, ({weights}), True, 1, 0.0, training, False, True)[0]"


def max_pool(site: Site) -> str:
    kind = site.kind
    if _fits_pool(kind.padding, kind.kernel):
        return f"max_pool({site.inputs[0]}, {_window(kind)}, (1, 1), {kind.ceil})"
    padded = _padded(site.inputs[0], _exact_pads(site.layer), "-infinity")
    return f"max_pool({padded}, {kind.kernel}, {kind.stride})"


def relu(site: Site) -> str:
    return f"{'relu' if site.overwrites is None else 'relu_'}({site.inputs[0]})"


def sigmoid(site: Site) -> str:
    return f"sigmoid({site.inputs[0]})"


def tanh(site: Site) -> str:
    return f"tanh({site.inputs[0]})"


KINDS: dict[str, Callable[[Site], str]] = {
    write.__name__: write
    for write in (
        add, average_pool, batch_norm, conv, dense, dropout, embedding, flatten, global_average_pool, lstm, max_pool,
        relu, sigmoid, tanh,
    )
}  # fmt: skip


def _fits_pool(padding: Pads, kernel: tuple[int, int]) -> bool:
    """PyTorch pads pools by the same number of cells before and behind, at most half a window."""
    return all(a == b and 2 * a <= window for (a, b), window in zip(padding, kernel, strict=True))


def _window(kind: Any) -> str:
    (top, _), (left, _) = kind.padding
    return f"{kind.kernel}, {kind.stride}, {(top, left)}"


def _exact_pads(layer: Layer) -> Pads:
    """Padding that makes every window whole, so that rounding up needs no further rule. May crop."""
    kind: Any = layer.kind
    pads = []
    for axis, (before, _) in enumerate(kind.padding):
        needed = (layer.shape[1 + axis] - 1) * kind.stride[axis] + kind.kernel[axis]
        pads.append((before, needed - before - layer.input_shapes[0][1 + axis]))
    return (pads[0], pads[1])


def _cells(layer: Layer, pads: Pads) -> Any:
    """How many cells of each window lie inside the image, as (1, 1, height, width)."""
    kind: Any = layer.kind
    counts = []
    for axis, (before, _) in enumerate(pads):
        starts = np.arange(layer.shape[1 + axis]) * kind.stride[axis] - before
        ends = np.minimum(starts + kind.kernel[axis], layer.input_shapes[0][1 + axis])
        counts.append(ends - np.maximum(starts, 0))
    return np.outer(counts[0], counts[1])[None, None].astype(np.float32)


def _padded(x: str, pads: Pads, value: str = "0.0") -> str:
    (top, bottom), (left, right) = pads
    return f"pad({x}, ({left}, {right}, {top}, {bottom}), {value})"
