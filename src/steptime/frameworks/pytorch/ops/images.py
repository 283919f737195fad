"""Lines for kinds that work on images."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.pytorch.ops.call_site import Site
from steptime.graph.ops import Pads
from steptime.graph.windows import cells, exact_pads


def average_pool(site: Site) -> str:
    kind = site.kind
    if _fits_pool(kind.padding, kind.kernel):
        return f"average_pool({site.inputs[0]}, {_window(kind)}, {kind.ceil}, False)"
    # Padding by hand makes it part of the image, so the sum is divided by the true number of cells.
    pads = exact_pads(site.layer)
    share = site.constant("share", 1 / np.array(cells(site.layer), np.float32)[None, None])
    whole = f"{kind.kernel}, {kind.stride}, (0, 0), False, True, 1"
    return f"average_pool({_padded(site.inputs[0], pads)}, {whole}).mul_({share})"


def batch_norm(site: Site) -> str:
    parts = ", ".join(
        site.weights[part] for part in ("weight", "bias", "running_mean", "running_variance")
    )
    return f"batch_norm({site.inputs[0]}, {parts}, training, {site.kind.momentum}, {site.kind.epsilon}, True)"


def conv(site: Site) -> str:
    kind, x = site.kind, site.inputs[0]
    (top, bottom), (left, right) = kind.padding
    padding = (top, left)
    if top != bottom or left != right:
        x, padding = _padded(x, kind.padding), (0, 0)
    weights = f"{site.weights['weight']}, {site.weights.get('bias')}"
    return f"conv2d({x}, {weights}, {kind.stride}, {padding}, {kind.dilation}, {kind.groups})"


def global_average_pool(site: Site) -> str:
    return f"{site.inputs[0]}.mean((2, 3))"


def lrn(site: Site) -> str:
    """The library's own goes through a pool in three dimensions, which is slower and has no half precision on CPUs."""
    kind, x = site.kind, site.inputs[0]
    window = f"({kind.size}, 1), (1, 1), ({kind.size // 2}, 0), False, True"  # over channels, padding counts as 0
    mean = f"average_pool(({x} * {x}).flatten(2), {window}).view({x}.shape)"
    return f"{x} / {mean}.mul_({kind.alpha}).add_({kind.k}).pow({kind.beta})"


def max_pool(site: Site) -> str:
    kind = site.kind
    if _fits_pool(kind.padding, kind.kernel):
        return f"max_pool({site.inputs[0]}, {_window(kind)}, (1, 1), {kind.ceil})"
    padded = _padded(site.inputs[0], exact_pads(site.layer), "-infinity")
    return f"max_pool({padded}, {kind.kernel}, {kind.stride})"


def pad_channels(site: Site) -> str:
    return f"pad({site.inputs[0]}, (0, 0, 0, 0, {site.kind.before}, {site.kind.behind}), 0.0)"


def _fits_pool(padding: Pads, kernel: tuple[int, int]) -> bool:
    """PyTorch pads pools by the same number of cells before and behind, at most half a window."""
    return all(a == b and 2 * a <= window for (a, b), window in zip(padding, kernel, strict=True))


def _window(kind: Any) -> str:
    (top, _), (left, _) = kind.padding
    return f"{kind.kernel}, {kind.stride}, {(top, left)}"


def _padded(x: str, pads: Pads, value: str = "0.0") -> str:
    (top, bottom), (left, right) = pads
    return f"pad({x}, ({left}, {right}, {top}, {bottom}), {value})"
