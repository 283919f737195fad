"""The windows of a pool in whole numbers: padding without a rounding rule, and cells inside."""

from __future__ import annotations

from typing import Any

from steptime.graph.layer import Layer
from steptime.graph.ops import Pads


def exact_pads(layer: Layer) -> Pads:
    """Padding that makes every window complete, so that rounding up needs no further rule.

    The padding after the image is negative if its last cells are in no window."""
    op: Any = layer.op
    pads = []
    for axis, (before, _) in enumerate(op.padding):
        windows = layer.shape[1 + axis]
        size = layer.input_shapes[0][1 + axis]
        end = (windows - 1) * op.stride[axis] + op.kernel[axis]
        pads.append((before, end - before - size))
    return pads[0], pads[1]


def covering_pads(layer: Layer) -> Pads:
    """The same for libraries that cannot crop: with it, rounding down gives the same windows."""
    (top, bottom), (left, right) = exact_pads(layer)
    return (top, max(bottom, 0)), (left, max(right, 0))


def cells(layer: Layer) -> list[list[int]]:
    """How many cells of each window lie inside the image, by row and column of the output."""
    heights = _cells_along(layer, 0)
    widths = _cells_along(layer, 1)
    return [[height * width for width in widths] for height in heights]


def _cells_along(layer: Layer, axis: int) -> list[int]:
    op: Any = layer.op
    size = layer.input_shapes[0][1 + axis]
    before = op.padding[axis][0]
    counts = []
    for index in range(layer.shape[1 + axis]):
        start = index * op.stride[axis] - before
        end = min(start + op.kernel[axis], size)
        counts.append(end - max(start, 0))
    return counts
