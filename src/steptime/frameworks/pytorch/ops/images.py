"""Lines for ops that work on images."""

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
    # Padding by hand makes it part of the image, so the sum is divided by the true number of cells.
    pads = exact_pads(site.layer)
    share = site.constant("share", 1 / np.array(cells(site.layer), np.float32)[None, None])
    whole = f"{op.kernel}, {op.stride}, (0, 0), False, True, 1"
    return f"average_pool({_padded(site.inputs[0], pads)}, {whole}).mul_({share})"


def batch_norm(site: CallSite) -> str:
    parts = ", ".join(
        site.weights[part] for part in ("weight", "bias", "running_mean", "running_variance")
    )
    return f"batch_norm({site.inputs[0]}, {parts}, training, {site.op.momentum}, {site.op.epsilon}, True)"


def conv(site: CallSite) -> str:
    op, x = site.op, site.inputs[0]
    (top, bottom), (left, right) = op.padding
    padding = (top, left)
    if top != bottom or left != right:
        x, padding = _padded(x, op.padding), (0, 0)
    weights = f"{site.weights['weight']}, {site.weights.get('bias')}"
    return f"conv2d({x}, {weights}, {op.stride}, {padding}, {op.dilation}, {op.groups})"


def global_average_pool(site: CallSite) -> str:
    return f"{site.inputs[0]}.mean((2, 3))"


def lrn(site: CallSite) -> str:
    """The library's own goes through a pool in three dimensions, which is slower and has no half precision on CPUs."""
    op, x = site.op, site.inputs[0]
    window = f"({op.size}, 1), (1, 1), ({op.size // 2}, 0), False, True"  # over channels, padding counts as 0
    mean = f"average_pool(({x} * {x}).flatten(2), {window}).view({x}.shape)"
    return f"{x} / {mean}.mul_({op.alpha}).add_({op.k}).pow({op.beta})"


def max_pool(site: CallSite) -> str:
    op = site.op
    if _fits_pool(op.padding, op.kernel):
        return f"max_pool({site.inputs[0]}, {_window(op)}, (1, 1), {op.ceil})"
    padded = _padded(site.inputs[0], exact_pads(site.layer), "-infinity")
    return f"max_pool({padded}, {op.kernel}, {op.stride})"


def pad_channels(site: CallSite) -> str:
    return f"pad({site.inputs[0]}, (0, 0, 0, 0, {site.op.before}, {site.op.after}), 0.0)"


def _fits_pool(padding: Pads, kernel: tuple[int, int]) -> bool:
    """PyTorch pads pools by the same number of cells before and behind, at most half a window."""
    return all(a == b and 2 * a <= window for (a, b), window in zip(padding, kernel, strict=True))


def _window(op: Any) -> str:
    (top, _), (left, _) = op.padding
    return f"{op.kernel}, {op.stride}, {(top, left)}"


def _padded(x: str, pads: Pads, value: str = "0.0") -> str:
    (top, bottom), (left, right) = pads
    return f"pad({x}, ({left}, {right}, {top}, {bottom}), {value})"
