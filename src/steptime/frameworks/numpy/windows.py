"""Ops that slide a window over an image: convolution and the pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.frameworks.numpy.context import Array, Gradients, LoweringContext, Result, Weights
from steptime.graph import Layer

Offset = tuple[int, ...]


class Windows:
    """The positions of a layer's windows in its padded input.

    The values at one offset within all windows are an image of the output's size."""

    def __init__(self, layer: Layer) -> None:
        op: Any = layer.op
        self.stride = op.stride
        self.kernel = op.kernel
        self.dilation = getattr(op, "dilation", (1, 1))
        self.size = layer.input_shapes[0][1:]
        self.count = layer.shape[1:]
        self.before = [pads[0] for pads in op.padding]
        self.after = [self._pad_after(axis) for axis in (0, 1)]
        self.padded = any(self.before + self.after)
        self.offsets: list[Offset] = list(np.ndindex(*self.kernel))
        # A 1×1 window that visits every cell: the input is its own only patch.
        self.plain = self.kernel == self.stride == (1, 1) and not self.padded

    def _pad_after(self, axis: int) -> int:
        """Padding up to the end of the last window.

        Rounding down leaves cells unread; rounding up reads beyond the layer's own padding."""
        reach = (self.kernel[axis] - 1) * self.dilation[axis] + 1
        end = (self.count[axis] - 1) * self.stride[axis] + reach
        return max(end - self.size[axis] - self.before[axis], 0)

    def pad(self, x: Array, fill: float = 0.0) -> Array:
        if not self.padded:
            return x
        pads = zip(self.before, self.after, strict=True)
        return np.pad(x, ((0, 0), (0, 0), *pads), constant_values=fill)

    def view(self, padded: Array, offset: Offset) -> Array:
        """A view of a padded image: the cells at this offset of every window."""
        rows = self._slice(0, offset[0])
        columns = self._slice(1, offset[1])
        return padded[..., rows, columns]

    def _slice(self, axis: int, offset: int) -> slice:
        start = offset * self.dilation[axis]
        stop = start + (self.count[axis] - 1) * self.stride[axis] + 1
        return slice(start, stop, self.stride[axis])

    def padded_zeros(self, x: Array) -> Array:
        """For the gradient of a padded input."""
        sides = zip(self.before, self.size, self.after, strict=True)
        return np.zeros((*x.shape[:2], *map(sum, sides)), x.dtype)

    def crop(self, padded: Array) -> Array:
        """The image without its padding."""
        top, left = self.before
        height, width = self.size
        return padded[:, :, top : top + height, left : left + width]


def conv(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    windows = Windows(layer)
    groups = layer.op.settings()["groups"]
    batch = len(x)
    # (group, filter, offset)
    weight = weights["weight"].reshape(groups, layer.shape[0] // groups, -1)
    # (image, group, offset, window)
    patches = _extract_patches(windows, x).reshape(batch, groups, weight.shape[2], -1)

    def backward(gradient: Array) -> Gradients:
        # (image, group, filter, window)
        gradients = gradient.reshape(batch, groups, weight.shape[1], -1)
        # Image by image: all at once would need memory for every image's gradient.
        of_weight: Array = 0
        for of_image, patch in zip(gradients, patches, strict=True):
            of_weight = of_weight + of_image @ patch.swapaxes(1, 2)
        of_input = _sum_patches(windows, weight.swapaxes(1, 2) @ gradients, x)
        of_weights = {
            "weight": of_weight.reshape(weights["weight"].shape),
            "bias": gradient.sum(axis=(0, 2, 3)),
        }
        return [of_input], of_weights

    y = (weight @ patches).reshape(batch, *layer.shape)
    if "bias" in weights:
        y = y + weights["bias"].reshape(1, -1, 1, 1)
    return y, backward


def _extract_patches(windows: Windows, x: Array) -> Array:
    """(image, channel, row, column) to (image, channel, offset, window's row, its column)."""
    if windows.plain:
        return x
    padded = windows.pad(x)
    patches = np.empty((*x.shape[:2], len(windows.offsets), *windows.count), x.dtype)
    for index, offset in enumerate(windows.offsets):
        patches[:, :, index] = windows.view(padded, offset)
    return patches


def _sum_patches(windows: Windows, patches: Array, x: Array) -> Array:
    """The reverse of `_extract_patches`: a cell of several windows gets the sum."""
    if windows.plain:
        return patches.reshape(x.shape)
    patches = patches.reshape(*x.shape[:2], len(windows.offsets), *windows.count)
    padded = windows.padded_zeros(x)
    for index, offset in enumerate(windows.offsets):
        windows.view(padded, offset)[...] += patches[:, :, index]
    return windows.crop(padded)


def max_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    windows = Windows(layer)
    padded = windows.pad(x, fill=-np.inf)
    y = windows.view(padded, windows.offsets[0]).copy()
    winner = np.zeros(y.shape, np.int16)
    for index, offset in enumerate(windows.offsets):
        value = windows.view(padded, offset)
        # Strictly larger, so that the first of equals wins.
        winner[value > y] = index
        np.maximum(y, value, out=y)

    def backward(gradient: Array) -> Gradients:
        of_padded = windows.padded_zeros(x)
        for index, offset in enumerate(windows.offsets):
            windows.view(of_padded, offset)[...] += gradient * (winner == index)
        return [windows.crop(of_padded)], {}

    return y, backward


def average_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Result:
    windows = Windows(layer)
    inside = windows.pad(np.ones((1, 1, *x.shape[2:]), x.dtype))
    counts = _sum_windows(windows, inside)

    def backward(gradient: Array) -> Gradients:
        of_padded = windows.padded_zeros(x)
        share = gradient / counts
        for offset in windows.offsets:
            windows.view(of_padded, offset)[...] += share
        return [windows.crop(of_padded)], {}

    return _sum_windows(windows, windows.pad(x)) / counts, backward


def _sum_windows(windows: Windows, padded: Array) -> Array:
    return sum(windows.view(padded, offset) for offset in windows.offsets)
