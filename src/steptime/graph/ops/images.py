"""Kinds that work on images (channels, height, width)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from steptime.graph.op import (
    DoesNotFit,
    Flops,
    Initial,
    Op,
    Shape,
    Weight,
    expect,
    fan_in_uniform,
)

Pair = tuple[int, int]
Pads = tuple[Pair, Pair]  # ((top, bottom), (left, right))


@dataclass(frozen=True)
class Conv(Op):
    """Cross-correlation; weight is (filters, channels / groups, height, width), zero padding."""

    not_structure = ("initial", "initial_bias")
    filters: int
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Pads = ((0, 0), (0, 0))
    dilation: Pair = (1, 1)
    groups: int = 1
    bias: bool = True
    initial: Initial | None = None
    initial_bias: Initial | None = None

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 3, "an image (channels, height, width)")
        if self.groups < 1 or inputs[0][0] % self.groups or self.filters % self.groups:
            raise DoesNotFit(
                f"{inputs[0][0]} channels and {self.filters} filters do not split into {self.groups} groups"
            )
        reach = tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        return (self.filters, *_slide(inputs[0], (reach[0], reach[1]), self.stride, self.padding))

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        shape = (self.filters, inputs[0][0] // self.groups, *self.kernel)
        law = fan_in_uniform(prod(shape[1:]))
        found = {"weight": Weight(shape, self.initial or law)}
        if self.bias:
            found["bias"] = Weight((self.filters,), self.initial_bias or law)
        return found

    def flops(self, *inputs: Shape) -> Flops:
        once = 2 * prod(self.shape(*inputs)) * (inputs[0][0] // self.groups) * prod(self.kernel)
        return Flops(once, once, once)


@dataclass(frozen=True)
class Pool(Op):
    """What both pools share. `ceil`: the last, partly empty window counts too."""

    kernel: Pair
    stride: Pair
    padding: Pads = ((0, 0), (0, 0))
    ceil: bool = False

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 3, "an image (channels, height, width)")
        if any(
            pad >= window
            for window, pads in zip(self.kernel, self.padding, strict=True)
            for pad in pads
        ):
            raise DoesNotFit(
                f"has windows of {self.kernel} that could lie wholly in its padding {self.padding}"
            )
        return (inputs[0][0], *_slide(inputs[0], self.kernel, self.stride, self.padding, self.ceil))


@dataclass(frozen=True)
class MaxPool(Pool):
    """Largest of each window; padding never wins, and of equals the first in reading order gets the gradient."""


@dataclass(frozen=True)
class AveragePool(Pool):
    """Mean of each window over the cells that are inside the image: padding is not counted."""


@dataclass(frozen=True)
class GlobalAveragePool(Op):
    """Mean over height and width; the result has channels only."""

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 3, "an image (channels, height, width)")
        return inputs[0][:1]


@dataclass(frozen=True)
class BatchNorm(Op):
    """Per channel. Training: biased variance of the batch normalises; running = (1 − momentum) · running +
    momentum · batch, with the unbiased variance. Inference: the running values normalise."""

    momentum: float = 0.1
    epsilon: float = 1e-5

    def shape(self, *inputs: Shape) -> Shape:
        if not inputs[0]:
            raise DoesNotFit(f"needs at least one axis, got shape {inputs[0]}")
        return inputs[0]

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        size = inputs[0][:1]
        return {
            "weight": Weight(size, Initial("constant", 1.0)),
            "bias": Weight(size, Initial("constant", 0.0)),
            "running_mean": Weight(size, Initial("constant", 0.0), trainable=False),
            "running_variance": Weight(size, Initial("constant", 1.0), trainable=False),
        }


@dataclass(frozen=True)
class Lrn(Op):
    """Local response normalisation across channels: x / (k + alpha / size · Σ x²)^beta, the sum over the `size`
    channels around this one (size // 2 before it), those outside the image counting as 0."""

    size: int = 5
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 3, "an image (channels, height, width)")
        if self.size < 1 or self.size % 2 == 0:
            raise DoesNotFit(f"needs an odd size, found {self.size}")
        return inputs[0]


@dataclass(frozen=True)
class PadChannels(Op):
    """So many channels of zeros before and behind: the shortcut of residual networks on CIFAR."""

    before: int
    behind: int

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 3, "an image (channels, height, width)")
        if min(self.before, self.behind) < 0:
            raise DoesNotFit(f"needs counts of at least 0, found {self.before} and {self.behind}")
        return (self.before + inputs[0][0] + self.behind, *inputs[0][1:])


def _slide(shape: Shape, reach: Pair, stride: Pair, padding: Pads, up: bool = False) -> Pair:
    """Output height and width of a sliding window."""
    if min(*reach, *stride) < 1:
        raise DoesNotFit(f"needs a window and a stride of at least 1, found {reach} and {stride}")
    if min(*padding[0], *padding[1]) < 0:
        raise DoesNotFit(f"needs padding of at least 0, found {padding}")
    sizes = []
    for size, window, hop, (before, after) in zip(shape[1:], reach, stride, padding, strict=True):
        room = size + before + after - window
        if room < 0:
            raise DoesNotFit(
                f"its window of {window} is larger than the padded input {size + before + after}"
            )
        count = (ceil(room / hop) if up else room // hop) + 1
        # A window may not start in the padding behind the image (Caffe's and PyTorch's rule for rounding up).
        if up and (count - 1) * hop >= size + before:
            count -= 1
        sizes.append(count)
    return sizes[0], sizes[1]
