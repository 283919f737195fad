"""Layers that work on images (batch, channels, height, width), in ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steptime.graph.layer import Layer
from steptime.graph.onnx.call_site import CallSite
from steptime.graph.windows import covering_pads


def average_pool(site: CallSite) -> None:
    site.add("AveragePool", site.x, count_include_pad=0, **_window(site.layer))


def batch_norm(site: CallSite) -> None:
    parts = [site.weight(part) for part in ("weight", "bias", "running_mean", "running_variance")]
    site.add("BatchNormalization", site.x, *parts, epsilon=site.op.epsilon)


def conv(site: CallSite) -> None:
    op = site.op
    (top, bottom), (left, right) = op.padding
    site.add(
        "Conv", site.x, site.weight("weight"), *site.bias(), kernel_shape=op.kernel, strides=op.stride,
        pads=(top, left, bottom, right), dilations=op.dilation, group=op.groups,
    )  # fmt: skip


def global_average_pool(site: CallSite) -> None:
    site.add("Flatten", site.add("GlobalAveragePool", site.x, part="mean"), axis=1)


def lrn(site: CallSite) -> None:
    """ONNX divides alpha by the size as we do; its `bias` is our k. Seen in OpenVINO 2026.4: it drops what k has behind
    the point, so such a k is taken out: (k + a)^-beta is k^-beta · (1 + a / k)^-beta."""
    op = site.op
    if float(op.k).is_integer():
        site.add("LRN", site.x, size=op.size, alpha=op.alpha, beta=op.beta, bias=op.k)
        return
    rest = site.add(
        "LRN",
        site.x,
        part="rest",
        size=op.size,
        alpha=op.alpha / op.k,
        beta=op.beta,
        bias=1.0,
    )
    site.add("Mul", rest, site.floats("share", op.k**-op.beta))


def max_pool(site: CallSite) -> None:
    site.add("MaxPool", site.x, **_window(site.layer))


def pad_channels(site: CallSite) -> None:
    op = site.op
    site.add("Pad", site.x, site.integers("pads", [0, op.before, 0, 0, 0, op.behind, 0, 0]))


OPS: dict[str, Callable[[CallSite], None]] = {
    write.__name__: write
    for write in (average_pool, batch_norm, conv, global_average_pool, lrn, max_pool, pad_channels)
}


def _window(layer: Layer) -> dict[str, Any]:
    op: Any = layer.op
    (top, bottom), (left, right) = covering_pads(layer)
    return {"kernel_shape": op.kernel, "strides": op.stride, "pads": (top, left, bottom, right)}
