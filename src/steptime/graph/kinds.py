"""The kinds of layers. Each states its exact semantics; a framework's lowering must compute just that."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import ClassVar

from steptime.graph.kind import DoesNotFit, Flops, Initial, Kind, Shape, Weight, expect, fan_in_uniform, kind_name

Pair = tuple[int, int]
Pads = tuple[Pair, Pair]  # ((top, bottom), (left, right))


@dataclass(frozen=True)
class Input(Kind):
    """The batch. `vocabulary` > 0: whole numbers below it (tokens); else floats."""

    inputs: ClassVar[int] = 0
    dims: Shape
    vocabulary: int = 0

    def shape(self, *inputs: Shape) -> Shape:
        return self.dims


@dataclass(frozen=True)
class Dense(Kind):
    """y = x · weightᵀ + bias over the last axis; weight is (units, features)."""

    not_structure = ("initial", "initial_bias")
    units: int
    bias: bool = True
    initial: Initial | None = None
    initial_bias: Initial | None = None

    def shape(self, *inputs: Shape) -> Shape:
        if not inputs[0]:
            raise DoesNotFit(f"needs at least one axis, got shape {inputs[0]}")
        return (*inputs[0][:-1], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        features = inputs[0][-1]
        law = fan_in_uniform(features)
        found = {"weight": Weight((self.units, features), self.initial or law)}
        if self.bias:
            found["bias"] = Weight((self.units,), self.initial_bias or law)
        return found

    def flops(self, *inputs: Shape) -> Flops:
        once = 2 * prod(inputs[0]) * self.units
        return Flops(once, once, once)


@dataclass(frozen=True)
class Conv(Kind):
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
class Pool(Kind):
    """What both pools share. `ceil`: the last, partly empty window counts too."""

    kernel: Pair
    stride: Pair
    padding: Pads = ((0, 0), (0, 0))
    ceil: bool = False

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 3, "an image (channels, height, width)")
        if any(pad >= window for window, pads in zip(self.kernel, self.padding, strict=True) for pad in pads):
            raise DoesNotFit(f"has windows of {self.kernel} that could lie wholly in its padding {self.padding}")
        return (inputs[0][0], *_slide(inputs[0], self.kernel, self.stride, self.padding, self.ceil))


@dataclass(frozen=True)
class MaxPool(Pool):
    """Largest of each window; padding never wins, and of equals the first in reading order gets the gradient."""


@dataclass(frozen=True)
class AveragePool(Pool):
    """Mean of each window over the cells that are inside the image: padding is not counted."""


@dataclass(frozen=True)
class GlobalAveragePool(Kind):
    """Mean over height and width; the result has channels only."""

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 3, "an image (channels, height, width)")
        return inputs[0][:1]


@dataclass(frozen=True)
class BatchNorm(Kind):
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
class Relu(Kind):
    """max(x, 0); the slope at 0 is 0."""


@dataclass(frozen=True)
class Tanh(Kind):
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)."""


@dataclass(frozen=True)
class Sigmoid(Kind):
    """1 / (1 + e⁻ˣ)."""


@dataclass(frozen=True)
class Dropout(Kind):
    """Training: each value is 0 with probability `rate`, else divided by 1 − rate. Inference: nothing."""

    rate: float = 0.5

    def shape(self, *inputs: Shape) -> Shape:
        if not 0 <= self.rate < 1:
            raise DoesNotFit(f"needs a rate of at least 0 and below 1, found {self.rate}")
        return inputs[0]


@dataclass(frozen=True)
class Add(Kind):
    """Sum of two equal shapes; nothing is broadcast."""

    inputs: ClassVar[int] = 2
    commutes: ClassVar[bool] = True

    def shape(self, *inputs: Shape) -> Shape:
        if inputs[0] != inputs[1]:
            raise DoesNotFit(f"needs two equal shapes, got {inputs[0]} and {inputs[1]}")
        return inputs[0]


@dataclass(frozen=True)
class Flatten(Kind):
    """All axes into one, channels slowest, whatever the memory layout."""

    def shape(self, *inputs: Shape) -> Shape:
        return (prod(inputs[0]),)


@dataclass(frozen=True)
class Embedding(Kind):
    """Row `token` of weight (vocabulary, width)."""

    vocabulary: int
    width: int

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0], self.width)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        return {"weight": Weight((self.vocabulary, self.width), Initial("uniform", 0.1))}

    def weights_read(self, batch: int, *inputs: Shape) -> int:
        return min(self.vocabulary, batch * prod(inputs[0])) * self.width


@dataclass(frozen=True)
class Lstm(Kind):
    """One layer over time, state starts at 0. gates = x · weight_inputᵀ + h · weight_hiddenᵀ + bias, in the order
    input, forget, candidate, output; c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c'). One bias."""

    not_structure = ("initial",)
    units: int
    initial: Initial | None = None

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 2, "a sequence (time, features)")
        return (inputs[0][0], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        law = self.initial or fan_in_uniform(self.units)
        return {
            "weight_input": Weight((4 * self.units, inputs[0][1]), law),
            "weight_hidden": Weight((4 * self.units, self.units), law),
            "bias": Weight((4 * self.units,), law),
        }

    def flops(self, *inputs: Shape) -> Flops:
        steps, features = inputs[0]
        from_input, from_hidden = (2 * 4 * self.units * size for size in (features, self.units))
        forward = steps * (from_input + from_hidden)
        # The weights' gradient needs the one through time, which stops at the first step: its state is a constant.
        through_time = (steps - 1) * from_hidden
        return Flops(forward, forward + through_time, steps * from_input)


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
            raise DoesNotFit(f"its window of {window} is larger than the padded input {size + before + after}")
        count = (ceil(room / hop) if up else room // hop) + 1
        # A window may not start in the padding behind the image (Caffe's and PyTorch's rule for rounding up).
        if up and (count - 1) * hop >= size + before:
            count -= 1
        sizes.append(count)
    return sizes[0], sizes[1]


KINDS: dict[str, type[Kind]] = {
    kind_name(kind): kind
    for kind in (
        Input, Dense, Conv, MaxPool, AveragePool, GlobalAveragePool, BatchNorm, Relu, Tanh, Sigmoid, Dropout, Add,
        Flatten, Embedding, Lstm,
    )
}  # fmt: skip
