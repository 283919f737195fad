"""Where a pool's windows lie in its image, in whole numbers: padding that needs no rule for rounding, cells inside."""

from __future__ import annotations

from typing import Any

from steptime.graph.layer import Layer
from steptime.graph.ops import Pads


def exact_pads(layer: Layer) -> Pads:
    """Padding that makes every window whole, so that rounding up needs no further rule. Negative behind the image: the
    last cells are in no window."""
    op: Any = layer.op
    pads = []
    for axis, (before, _) in enumerate(op.padding):
        end = (layer.shape[1 + axis] - 1) * op.stride[axis] + op.kernel[axis]
        pads.append((before, end - before - layer.input_shapes[0][1 + axis]))
    return pads[0], pads[1]


def covering_pads(layer: Layer) -> Pads:
    """The same for those who cannot crop: with it, rounding down gives the layer's own windows."""
    (top, bottom), (left, right) = exact_pads(layer)
    return (top, max(bottom, 0)), (left, max(right, 0))


def cells(layer: Layer) -> list[list[int]]:
    """How many cells of each window lie inside the image, by row and column of the output."""
    op: Any = layer.op
    counts = []
    for axis, (before, _) in enumerate(op.padding):
        starts = [place * op.stride[axis] - before for place in range(layer.shape[1 + axis])]
        size, window = layer.input_shapes[0][1 + axis], op.kernel[axis]
        counts.append([min(start + window, size) - max(start, 0) for start in starts])
    return [[tall * wide for wide in counts[1]] for tall in counts[0]]
