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
    roles = ("weight", "bias", "running_mean", "running_variance")
    weights = [site.weight(role) for role in roles]
    site.add("BatchNormalization", site.x, *weights, epsilon=site.op.epsilon)


def conv(site: CallSite) -> None:
    op = site.op
    (top, bottom), (left, right) = op.padding
    site.add(
        "Conv",
        site.x,
        site.weight("weight"),
        *site.bias(),
        kernel_shape=op.kernel,
        strides=op.stride,
        pads=(top, left, bottom, right),
        dilations=op.dilation,
        group=op.groups,
    )


def global_average_pool(site: CallSite) -> None:
    # ONNX keeps height and width of 1, which Flatten removes.
    mean = site.add("GlobalAveragePool", site.x, suffix="mean")
    site.add("Flatten", mean, axis=1)


def lrn(site: CallSite) -> None:
    """ONNX divides alpha by the size as we do; its `bias` is our k."""
    op = site.op
    if float(op.k).is_integer():
        site.add("LRN", site.x, size=op.size, alpha=op.alpha, beta=op.beta, bias=op.k)
        return
    # OpenVINO 2026.4 drops the fraction of k, so such a k becomes a factor:
    # (k + a)^-beta is k^-beta · (1 + a / k)^-beta.
    alpha = op.alpha / op.k
    scaled = site.add(
        "LRN", site.x, suffix="scaled", size=op.size, alpha=alpha, beta=op.beta, bias=1.0
    )
    site.add("Mul", scaled, site.floats("factor", op.k**-op.beta))


def max_pool(site: CallSite) -> None:
    site.add("MaxPool", site.x, **_window(site.layer))


def pad_channels(site: CallSite) -> None:
    op = site.op
    # Axes in order, all starts and then all ends.
    pads = site.integers("pads", [0, op.before, 0, 0, 0, op.after, 0, 0])
    site.add("Pad", site.x, pads)


OPS: dict[str, Callable[[CallSite], None]] = {
    "average_pool": average_pool,
    "batch_norm": batch_norm,
    "conv": conv,
    "global_average_pool": global_average_pool,
    "lrn": lrn,
    "max_pool": max_pool,
    "pad_channels": pad_channels,
}


def _window(layer: Layer) -> dict[str, Any]:
    op: Any = layer.op
    (top, bottom), (left, right) = covering_pads(layer)
    return {"kernel_shape": op.kernel, "strides": op.stride, "pads": (top, left, bottom, right)}
