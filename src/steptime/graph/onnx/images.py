"""Layers that work on images (batch, channels, height, width), in ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steptime.graph.layer import Layer
from steptime.graph.onnx.call_site import Site
from steptime.graph.windows import covering_pads


def average_pool(site: Site) -> None:
    site.add("AveragePool", site.x, count_include_pad=0, **_window(site.layer))


def batch_norm(site: Site) -> None:
    parts = [site.weight(part) for part in ("weight", "bias", "running_mean", "running_variance")]
    site.add("BatchNormalization", site.x, *parts, epsilon=site.kind.epsilon)


def conv(site: Site) -> None:
    kind = site.kind
    (top, bottom), (left, right) = kind.padding
    site.add(
        "Conv", site.x, site.weight("weight"), *site.bias(), kernel_shape=kind.kernel, strides=kind.stride,
        pads=(top, left, bottom, right), dilations=kind.dilation, group=kind.groups,
    )  # fmt: skip


def global_average_pool(site: Site) -> None:
    site.add("Flatten", site.add("GlobalAveragePool", site.x, part="mean"), axis=1)


def lrn(site: Site) -> None:
    """ONNX divides alpha by the size as we do; its `bias` is our k. Seen in OpenVINO 2026.4: it drops what k has behind
    the point, so such a k is taken out: (k + a)^-beta is k^-beta · (1 + a / k)^-beta."""
    kind = site.kind
    if float(kind.k).is_integer():
        site.add("LRN", site.x, size=kind.size, alpha=kind.alpha, beta=kind.beta, bias=kind.k)
        return
    rest = site.add(
        "LRN",
        site.x,
        part="rest",
        size=kind.size,
        alpha=kind.alpha / kind.k,
        beta=kind.beta,
        bias=1.0,
    )
    site.add("Mul", rest, site.floats("share", kind.k**-kind.beta))


def max_pool(site: Site) -> None:
    site.add("MaxPool", site.x, **_window(site.layer))


def pad_channels(site: Site) -> None:
    kind = site.kind
    site.add("Pad", site.x, site.integers("pads", [0, kind.before, 0, 0, 0, kind.behind, 0, 0]))


KINDS: dict[str, Callable[[Site], None]] = {
    write.__name__: write
    for write in (average_pool, batch_norm, conv, global_average_pool, lrn, max_pool, pad_channels)
}


def _window(layer: Layer) -> dict[str, Any]:
    kind: Any = layer.kind
    (top, bottom), (left, right) = covering_pads(layer)
    return {"kernel_shape": kind.kernel, "strides": kind.stride, "pads": (top, left, bottom, right)}
