"""Expressions for ops on images."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.pytorch.ops.call_site import CallSite
from steptime.graph.ops import Pads
from steptime.graph.windows import cells, exact_pads


def average_pool(site: CallSite) -> str:
    op = site.op
    if _fits_pool(op.padding, op.kernel):
        return f"average_pool({site.inputs[0]}, {_window(op)}, {op.ceil}, False)"
    # Explicit padding counts as cells of the image, so the pool only sums (divisor 1), and a
    # constant divides by the true number of cells.
    counts = np.array(cells(site.layer), np.float32)[None, None]
    share = site.constant("share", 1 / counts)
    padded = _pad(site.inputs[0], exact_pads(site.layer))
    sum_window = f"{op.kernel}, {op.stride}, (0, 0), False, True, 1"
    return f"average_pool({padded}, {sum_window}).mul_({share})"


def batch_norm(site: CallSite) -> str:
    roles = ("weight", "bias", "running_mean", "running_variance")
    weights = ", ".join(site.weights[role] for role in roles)
    settings = f"training, {site.op.momentum}, {site.op.epsilon}, True"
    return f"batch_norm({site.inputs[0]}, {weights}, {settings})"


def conv(site: CallSite) -> str:
    op = site.op
    x = site.inputs[0]
    (top, bottom), (left, right) = op.padding
    padding = (top, left)
    # PyTorch's own padding is the same on both sides.
    if top != bottom or left != right:
        x = _pad(x, op.padding)
        padding = (0, 0)
    weights = f"{site.weights['weight']}, {site.weights.get('bias')}"
    return f"conv2d({x}, {weights}, {op.stride}, {padding}, {op.dilation}, {op.groups})"


def global_average_pool(site: CallSite) -> str:
    return f"{site.inputs[0]}.mean((2, 3))"


def lrn(site: CallSite) -> str:
    """Not PyTorch's own, which uses a 3D pool: slower, and without half precision on CPUs."""
    op = site.op
    x = site.inputs[0]
    # Over channels; padding counts as 0.
    window = f"({op.size}, 1), (1, 1), ({op.size // 2}, 0), False, True"
    mean = f"average_pool(({x} * {x}).flatten(2), {window}).view({x}.shape)"
    return f"{x} / {mean}.mul_({op.alpha}).add_({op.k}).pow({op.beta})"


def max_pool(site: CallSite) -> str:
    op = site.op
    if _fits_pool(op.padding, op.kernel):
        return f"max_pool({site.inputs[0]}, {_window(op)}, (1, 1), {op.ceil})"
    padded = _pad(site.inputs[0], exact_pads(site.layer), "-infinity")
    return f"max_pool({padded}, {op.kernel}, {op.stride})"


def pad_channels(site: CallSite) -> str:
    return f"pad({site.inputs[0]}, (0, 0, 0, 0, {site.op.before}, {site.op.after}), 0.0)"


def _fits_pool(padding: Pads, kernel: tuple[int, int]) -> bool:
    """PyTorch pads pools by the same number of cells on both sides, at most half a window."""
    for (before, after), window in zip(padding, kernel, strict=True):
        if before != after or 2 * before > window:
            return False
    return True


def _window(op: Any) -> str:
    (top, _), (left, _) = op.padding
    return f"{op.kernel}, {op.stride}, {(top, left)}"


def _pad(x: str, pads: Pads, value: str = "0.0") -> str:
    (top, bottom), (left, right) = pads
    return f"pad({x}, ({left}, {right}, {top}, {bottom}), {value})"
