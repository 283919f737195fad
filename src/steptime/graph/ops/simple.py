"""Ops that do not depend on position or time: products, activations, joining and slicing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from steptime.graph.op import DoesNotFit, Flops, Initializer, Op, Shape, Weight, fan_in_uniform


@dataclass(frozen=True)
class Input(Op):
    """The batch. `vocabulary` > 0: whole numbers below it (tokens); else floats."""

    dims: Shape
    vocabulary: int = 0

    @property
    def inputs(self) -> int:
        return 0

    def shape(self, *inputs: Shape) -> Shape:
        return self.dims


@dataclass(frozen=True)
class Dense(Op):
    """y = x · weightᵀ + bias over the last axis; weight is (units, features)."""

    not_structure = ("initializer", "bias_initializer")
    units: int
    bias: bool = True
    initializer: Initializer | None = None
    bias_initializer: Initializer | None = None

    def shape(self, *inputs: Shape) -> Shape:
        if not inputs[0]:
            raise DoesNotFit(f"needs at least one axis, got shape {inputs[0]}")
        return (*inputs[0][:-1], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        features = inputs[0][-1]
        default = fan_in_uniform(features)
        weights = {"weight": Weight((self.units, features), self.initializer or default)}
        if self.bias:
            weights["bias"] = Weight((self.units,), self.bias_initializer or default)
        return weights

    def flops(self, *inputs: Shape) -> Flops:
        flops = 2 * prod(inputs[0]) * self.units
        return Flops(flops, flops, flops)


@dataclass(frozen=True)
class Relu(Op):
    """max(x, 0); the gradient at 0 is 0."""


@dataclass(frozen=True)
class Tanh(Op):
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)."""


@dataclass(frozen=True)
class Sigmoid(Op):
    """1 / (1 + e⁻ˣ)."""


@dataclass(frozen=True)
class Gelu(Op):
    """x Φ(x), Φ the normal distribution function.

    `tanh`: Φ(x) ≈ ½ (1 + tanh(√(2/π) (x + 0.044715 x³))), as in GPT-2."""

    tanh: bool = False


@dataclass(frozen=True)
class LayerNorm(Op):
    """Over the last axis: (x − mean) / √(variance + epsilon) · weight + bias.

    The variance is the biased one."""

    epsilon: float = 1e-5

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        size = inputs[0][-1:]
        return {
            "weight": Weight(size, Initializer("constant", 1.0)),
            "bias": Weight(size, Initializer("constant", 0.0)),
        }


@dataclass(frozen=True)
class Dropout(Op):
    """Training: each value is 0 with probability `rate`, else divided by 1 − rate.

    Inference: the values as they are."""

    rate: float = 0.5

    def shape(self, *inputs: Shape) -> Shape:
        if not 0 <= self.rate < 1:
            raise DoesNotFit(f"needs a rate of at least 0 and below 1, found {self.rate}")
        return inputs[0]


@dataclass(frozen=True)
class Add(Op):
    """Sum of two equal shapes; nothing is broadcast."""

    commutes: ClassVar[bool] = True

    @property
    def inputs(self) -> int:
        return 2

    def shape(self, *inputs: Shape) -> Shape:
        if inputs[0] != inputs[1]:
            raise DoesNotFit(f"needs two equal shapes, got {inputs[0]} and {inputs[1]}")
        return inputs[0]


@dataclass(frozen=True)
class Scale(Op):
    """x · factor."""

    factor: float


@dataclass(frozen=True)
class Concat(Op):
    """Joins along `axis` of a sample's shape: 0 is channels of images, −1 features."""

    digest_names: ClassVar[Mapping[str, str]] = {"count": "parts"}
    count: int
    axis: int = 0

    @property
    def inputs(self) -> int:
        return self.count

    def shape(self, *inputs: Shape) -> Shape:
        rank = len(inputs[0])
        if not -rank <= self.axis < rank:
            raise DoesNotFit(f"has no axis {self.axis} in the shape {inputs[0]}")
        axis = self.axis % rank
        before = inputs[0][:axis]
        after = inputs[0][axis + 1 :]
        for shape in inputs:
            if len(shape) != rank or shape[:axis] != before or shape[axis + 1 :] != after:
                shapes = ", ".join(map(str, inputs))
                raise DoesNotFit(f"needs shapes that differ in axis {axis} alone, got {shapes}")
        return (*before, sum(shape[axis] for shape in inputs), *after)


@dataclass(frozen=True)
class Slice(Op):
    """x[..., start:stop] along the last axis. Slices of tokens are tokens."""

    start: int
    stop: int

    def takes_tokens(self, index: int) -> bool | None:
        return None

    def shape(self, *inputs: Shape) -> Shape:
        size = inputs[0][-1]
        if not 0 <= self.start < self.stop <= size:
            raise DoesNotFit(f"cannot cut {self.start} to {self.stop} out of {size}")
        return (*inputs[0][:-1], self.stop - self.start)


@dataclass(frozen=True)
class Flatten(Op):
    """All axes into one, channels slowest, whatever the memory layout."""

    def shape(self, *inputs: Shape) -> Shape:
        return (prod(inputs[0]),)
