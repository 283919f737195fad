"""Ops on images (channels, height, width)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import ClassVar

from steptime.graph.op import (
    DoesNotFit,
    Flops,
    Initializer,
    Op,
    Shape,
    Weight,
    expect_rank,
    fan_in_uniform,
)

Pair = tuple[int, int]
Pads = tuple[Pair, Pair]  # ((top, bottom), (left, right))

# Winograd's F(4, 3) needs six multiplications for four outputs (Lavin and Gray, 2016). Larger
# tiles and Fourier transforms need fewer in theory, but are too inexact or too slow to be used.
LEAST_PRODUCTS_PER_AXIS = 1.5


@dataclass(frozen=True)
class Conv(Op):
    """Cross-correlation; weight is (filters, channels / groups, height, width), zero padding."""

    not_structure = ("initializer", "bias_initializer")
    filters: int
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Pads = ((0, 0), (0, 0))
    dilation: Pair = (1, 1)
    groups: int = 1
    bias: bool = True
    initializer: Initializer | None = None
    bias_initializer: Initializer | None = None

    def shape(self, *inputs: Shape) -> Shape:
        _expect_image(inputs[0])
        channels = inputs[0][0]
        if self.groups < 1 or channels % self.groups or self.filters % self.groups:
            raise DoesNotFit(
                f"{channels} channels and {self.filters} filters "
                f"do not split into {self.groups} groups"
            )
        height, width = self.kernel
        reach = ((height - 1) * self.dilation[0] + 1, (width - 1) * self.dilation[1] + 1)
        return (self.filters, *_slide(inputs[0], reach, self.stride, self.padding))

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        shape = (self.filters, inputs[0][0] // self.groups, *self.kernel)
        default = fan_in_uniform(prod(shape[1:]))
        weights = {"weight": Weight(shape, self.initializer or default)}
        if self.bias:
            weights["bias"] = Weight((self.filters,), self.bias_initializer or default)
        return weights

    def flops(self, *inputs: Shape) -> Flops:
        products_per_output = (inputs[0][0] // self.groups) * prod(self.kernel)
        flops = 2 * prod(self.shape(*inputs)) * products_per_output
        return Flops(flops, flops, flops)

    def least_flops_share(self, *inputs: Shape) -> float:
        """With a fast algorithm along each axis of the kernel; padding may be skipped, too."""
        return prod(min(1.0, LEAST_PRODUCTS_PER_AXIS / size) for size in self.kernel)


@dataclass(frozen=True)
class Pool(Op):
    """What both pools share. `ceil`: the last, partly empty window counts too."""

    kernel: Pair
    stride: Pair
    padding: Pads = ((0, 0), (0, 0))
    ceil: bool = False

    def shape(self, *inputs: Shape) -> Shape:
        _expect_image(inputs[0])
        for window, pads in zip(self.kernel, self.padding, strict=True):
            if max(pads) >= window:
                raise DoesNotFit(
                    f"has windows of {self.kernel} that could lie entirely "
                    f"in its padding {self.padding}"
                )
        size = _slide(inputs[0], self.kernel, self.stride, self.padding, round_up=self.ceil)
        return (inputs[0][0], *size)


@dataclass(frozen=True)
class MaxPool(Pool):
    """Largest of each window; padding never wins.

    The first of equal values, in reading order, gets the gradient."""


@dataclass(frozen=True)
class AveragePool(Pool):
    """Mean over the cells of each window that are inside the image: padding is not counted."""


@dataclass(frozen=True)
class GlobalAveragePool(Op):
    """Mean over height and width; the result has channels only."""

    def shape(self, *inputs: Shape) -> Shape:
        _expect_image(inputs[0])
        return inputs[0][:1]


@dataclass(frozen=True)
class BatchNorm(Op):
    """Per channel.

    Training normalises with the biased variance of the batch, and then
    running = (1 − momentum) · running + momentum · batch, with the unbiased variance.
    Inference normalises with the running values."""

    momentum: float = 0.1
    epsilon: float = 1e-5

    def shape(self, *inputs: Shape) -> Shape:
        if not inputs[0]:
            raise DoesNotFit(f"needs at least one axis, got shape {inputs[0]}")
        return inputs[0]

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        size = inputs[0][:1]
        zeros = Initializer("constant", 0.0)
        ones = Initializer("constant", 1.0)
        return {
            "weight": Weight(size, ones),
            "bias": Weight(size, zeros),
            "running_mean": Weight(size, zeros, trainable=False),
            "running_variance": Weight(size, ones, trainable=False),
        }


@dataclass(frozen=True)
class Lrn(Op):
    """Local response normalisation across channels: x / (k + alpha / size · Σ x²)^beta.

    The sum is over the `size` channels around this one (size // 2 before it); channels outside
    the image count as 0."""

    size: int = 5
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def shape(self, *inputs: Shape) -> Shape:
        _expect_image(inputs[0])
        if self.size < 1 or self.size % 2 == 0:
            raise DoesNotFit(f"needs an odd size, found {self.size}")
        return inputs[0]


@dataclass(frozen=True)
class PadChannels(Op):
    """Adds channels of zeros before and after: the shortcut of residual networks on CIFAR."""

    digest_names: ClassVar[Mapping[str, str]] = {"after": "behind"}
    before: int
    after: int

    def shape(self, *inputs: Shape) -> Shape:
        _expect_image(inputs[0])
        if min(self.before, self.after) < 0:
            raise DoesNotFit(f"needs counts of at least 0, found {self.before} and {self.after}")
        channels = self.before + inputs[0][0] + self.after
        return (channels, *inputs[0][1:])


def _expect_image(shape: Shape) -> None:
    expect_rank(shape, 3, "an image (channels, height, width)")


def _slide(
    shape: Shape, reach: Pair, stride: Pair, padding: Pads, *, round_up: bool = False
) -> Pair:
    """Output height and width of a sliding window."""
    if min(*reach, *stride) < 1:
        raise DoesNotFit(f"needs a window and a stride of at least 1, found {reach} and {stride}")
    if min(*padding[0], *padding[1]) < 0:
        raise DoesNotFit(f"needs padding of at least 0, found {padding}")
    sizes = []
    for size, window, hop, (before, after) in zip(shape[1:], reach, stride, padding, strict=True):
        padded = size + before + after
        room = padded - window
        if room < 0:
            raise DoesNotFit(f"its window of {window} is larger than the padded input {padded}")
        hops = ceil(room / hop) if round_up else room // hop
        # Rounding up, a window may not start in the padding after the image. This is the rule of
        # Caffe and PyTorch.
        if round_up and hops * hop >= size + before:
            hops -= 1
        sizes.append(hops + 1)
    return sizes[0], sizes[1]
