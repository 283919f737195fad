"""Layers that slide a window over an image: convolution and the pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.numpy.context import Array, Back, Gradients, LoweringContext
from steptime.graph import Layer


class Windows:
    """Where a layer's windows lie in its padded input. A cell is one place of the kernel: its values, one for each
    window, are a picture of the output's size."""

    def __init__(self, layer: Layer) -> None:
        op: Any = layer.op
        self.stride, self.kernel = op.stride, op.kernel
        self.dilation = getattr(op, "dilation", (1, 1))
        self.size, self.count = layer.input_shapes[0][1:], layer.shape[1:]
        self.before = [pads[0] for pads in op.padding]
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        # How far the last window really goes: rounding down leaves cells unread, rounding up reads beyond the padding.
        extent = [(n - 1) * s + r for n, s, r in zip(self.count, self.stride, reach, strict=True)]
        ends = zip(extent, self.size, self.before, strict=True)
        self.behind = [max(end - size - before, 0) for end, size, before in ends]
        self.cells = list(np.ndindex(*self.kernel))
        self.plain = self.kernel == self.stride == (1, 1) and not any(self.before + self.behind)

    def pad(self, x: Array, fill: float = 0.0) -> Array:
        around = zip(self.before, self.behind, strict=True)
        return (
            np.pad(x, ((0, 0), (0, 0), *around), constant_values=fill)
            if any(self.before + self.behind)
            else x
        )

    def cell(self, room: Array, place: tuple[int, ...]) -> Array:
        """A view of the padded input."""
        (down, across), (rows, columns) = self.stride, self.count
        row, column = (i * d for i, d in zip(place, self.dilation, strict=True))
        return room[
            ...,
            row : row + (rows - 1) * down + 1 : down,
            column : column + (columns - 1) * across + 1 : across,
        ]

    def room(self, x: Array) -> Array:
        """Empty, for what goes back to a padded input."""
        sides = zip(self.before, self.size, self.behind, strict=True)
        return np.zeros((*x.shape[:2], *map(sum, sides)), x.dtype)

    def inner(self, room: Array) -> Array:
        """The image without its padding."""
        (top, left), (height, width) = self.before, self.size
        return room[:, :, top : top + height, left : left + width]


def conv(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    windows, groups = Windows(layer), layer.op.settings()["groups"]
    weight = weights["weight"].reshape(
        groups, layer.shape[0] // groups, -1
    )  # (group, filter, cell)
    patches = _patches(windows, x).reshape(
        len(x), groups, weight.shape[2], -1
    )  # (image, group, cell, window)

    def back(gradient: Array) -> Gradients:
        gradients = gradient.reshape(
            len(x), groups, weight.shape[1], -1
        )  # (image, group, filter, window)
        of_weight = sum(
            own @ cells.swapaxes(1, 2) for own, cells in zip(gradients, patches, strict=True)
        )
        of_input = _pasted(windows, weight.swapaxes(1, 2) @ gradients, x)
        return [of_input], {
            "weight": of_weight.reshape(weights["weight"].shape),
            "bias": gradient.sum(axis=(0, 2, 3)),
        }

    y = (weight @ patches).reshape(len(x), *layer.shape)
    return y + weights["bias"].reshape(1, -1, 1, 1) if "bias" in weights else y, back


def _patches(windows: Windows, x: Array) -> Array:
    """(image, channel, row, column) to (image, channel, cell, window's row, its column)."""
    if windows.plain:
        return x
    room = windows.pad(x)
    found = np.empty((*x.shape[:2], len(windows.cells), *windows.count), x.dtype)
    for number, place in enumerate(windows.cells):
        found[:, :, number] = windows.cell(room, place)
    return found


def _pasted(windows: Windows, patches: Array, x: Array) -> Array:
    """The way back: what several windows share gets the sum."""
    if windows.plain:
        return patches.reshape(x.shape)
    patches = patches.reshape(*x.shape[:2], len(windows.cells), *windows.count)
    room = windows.room(x)
    for number, place in enumerate(windows.cells):
        windows.cell(room, place)[...] += patches[:, :, number]
    return windows.inner(room)


def max_pool(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    windows = Windows(layer)
    room = windows.pad(x, fill=-np.inf)
    y = windows.cell(room, windows.cells[0]).copy()
    winner = np.zeros(y.shape, np.int16)
    for number, place in enumerate(windows.cells):
        value = windows.cell(room, place)
        winner[value > y] = number  # the first of equals wins
        np.maximum(y, value, out=y)

    def back(gradient: Array) -> Gradients:
        found = windows.room(x)
        for number, place in enumerate(windows.cells):
            windows.cell(found, place)[...] += gradient * (winner == number)
        return [windows.inner(found)], {}

    return y, back


def average_pool(
    layer: Layer, weights: dict[str, Array], context: LoweringContext, x: Array
) -> tuple[Array, Back]:
    windows = Windows(layer)
    room, inside = windows.pad(x), windows.pad(np.ones((1, 1, *x.shape[2:]), x.dtype))
    counts = sum(windows.cell(inside, place) for place in windows.cells)

    def back(gradient: Array) -> Gradients:
        found, share = windows.room(x), gradient / counts
        for place in windows.cells:
            windows.cell(found, place)[...] += share
        return [windows.inner(found)], {}

    return sum(windows.cell(room, place) for place in windows.cells) / counts, back
