"""Layers that slide a window over an image: convolution and the pools."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from steptime.frameworks.numpy.walk import Array, Back, Slopes, Walk
from steptime.graph import Layer


class Windows:
    """Where a layer's windows lie in its padded input."""

    def __init__(self, layer: Layer) -> None:
        kind: Any = layer.kind
        self.stride, self.kernel = kind.stride, kind.kernel
        self.dilation = getattr(kind, "dilation", (1, 1))
        self.size, self.count = layer.input_shapes[0][1:], layer.shape[1:]
        self.before = [pads[0] for pads in kind.padding]
        self.reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        # How far the last window really goes: rounding down leaves cells unread, rounding up reads beyond the padding.
        self.extent = [(n - 1) * s + r for n, s, r in zip(self.count, self.stride, self.reach, strict=True)]

    def cut(self, x: Array, fill: float = 0.0) -> Array:
        """(batch, channels, height, width) to (…, output height, output width, kernel height, kernel width)."""
        (top, left), (bottom, right) = self.before, self._behind
        room = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
        (down, across), (tall, wide), (h, w) = self.stride, self.dilation, self.extent
        return sliding_window_view(room[:, :, :h, :w], self.reach, (2, 3))[:, :, ::down, ::across, ::tall, ::wide]

    def paste(self, slopes: Array) -> Array:
        """The way back of `cut`: cells that several windows share get the sum."""
        (top, left), (bottom, right) = self.before, self._behind
        height, width = self.size[0] + top + bottom, self.size[1] + left + right
        room = np.zeros((*slopes.shape[:2], height, width))
        (down, across), (tall, wide), (rows, columns) = self.stride, self.dilation, self.count
        for i, j in np.ndindex(*self.kernel):
            row, column = i * tall, j * wide
            room[:, :, row : row + rows * down : down, column : column + columns * across : across] += slopes[..., i, j]
        return room[:, :, top : top + self.size[0], left : left + self.size[1]]

    @property
    def _behind(self) -> list[int]:
        ends = zip(self.extent, self.size, self.before, strict=True)
        return [max(extent - size - before, 0) for extent, size, before in ends]


def conv(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    windows, groups = Windows(layer), layer.kind.settings()["groups"]
    rows, columns = layer.shape[1:]
    weight = weights["weight"].reshape(groups, layer.shape[0] // groups, -1)  # (group, filter, cell)
    patches = _by_group(windows.cut(x), groups)  # (group, place, cell)

    def back(slope: Array) -> Slopes:
        places = slope.transpose(1, 0, 2, 3).reshape(groups, layer.shape[0] // groups, -1)  # (group, filter, place)
        of_weight = (places @ patches).reshape(weights["weight"].shape)
        cells = places.transpose(0, 2, 1) @ weight
        cells = cells.reshape(groups, len(x), rows, columns, -1, *windows.kernel).transpose(1, 0, 4, 2, 3, 5, 6)
        of_input = windows.paste(cells.reshape(len(x), x.shape[1], rows, columns, *windows.kernel))
        return [of_input], {"weight": of_weight, "bias": slope.sum(axis=(0, 2, 3))}

    y = (weight @ patches.transpose(0, 2, 1)).reshape(layer.shape[0], len(x), rows, columns).transpose(1, 0, 2, 3)
    return y + weights["bias"].reshape(1, -1, 1, 1) if "bias" in weights else y, back


def _by_group(windows: Array, groups: int) -> Array:
    batch, channels, rows, columns, *kernel = windows.shape
    split = windows.reshape(batch, groups, channels // groups, rows, columns, *kernel)
    return split.transpose(1, 0, 3, 4, 2, 5, 6).reshape(groups, batch * rows * columns, -1)


def max_pool(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    windows = Windows(layer)
    cells = windows.cut(x, fill=-np.inf)
    flat = cells.reshape(*cells.shape[:4], -1)
    winner = flat.argmax(axis=-1)[..., None]

    def back(slope: Array) -> Slopes:
        won = winner == np.arange(flat.shape[-1])
        return [windows.paste((won * slope[..., None]).reshape(cells.shape))], {}

    return np.take_along_axis(flat, winner, axis=-1)[..., 0], back


def average_pool(layer: Layer, weights: dict[str, Array], walk: Walk, x: Array) -> tuple[Array, Back]:
    windows = Windows(layer)
    inside = windows.cut(np.ones((1, 1, *x.shape[2:])))
    share = inside / inside.sum(axis=(4, 5), keepdims=True)

    def back(slope: Array) -> Slopes:
        return [windows.paste(slope[..., None, None] * share)], {}

    return (windows.cut(x) * share).sum(axis=(4, 5)), back
