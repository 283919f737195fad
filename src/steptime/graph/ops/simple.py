"""Kinds that know no place and no time: products, activations, and how tensors are joined and cut."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from steptime.graph.op import DoesNotFit, Flops, Initial, Op, Shape, Weight, fan_in_uniform


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
    """x Φ(x), Φ the normal distribution. `tanh`: Φ(x) ≈ ½ (1 + tanh(√(2/π) (x + 0.044715 x³))), as GPT-2 has it."""

    tanh: bool = False


@dataclass(frozen=True)
class LayerNorm(Op):
    """Over the last axis: (x − mean) / √(variance + epsilon) · weight + bias, with the biased variance."""

    epsilon: float = 1e-5

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        size = inputs[0][-1:]
        return {
            "weight": Weight(size, Initial("constant", 1.0)),
            "bias": Weight(size, Initial("constant", 0.0)),
        }


@dataclass(frozen=True)
class Dropout(Op):
    """Training: each value is 0 with probability `rate`, else divided by 1 − rate. Inference: nothing."""

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
    """Joined along `axis` of a sample's shape: 0 is channels of images, −1 features of sequences."""

    parts: int
    axis: int = 0

    @property
    def inputs(self) -> int:
        return self.parts

    def shape(self, *inputs: Shape) -> Shape:
        rank = len(inputs[0])
        if not -rank <= self.axis < rank:
            raise DoesNotFit(f"has no axis {self.axis} in the shape {inputs[0]}")
        axis = self.axis % rank
        if any(
            shape[:axis] + shape[axis + 1 :] != inputs[0][:axis] + inputs[0][axis + 1 :]
            for shape in inputs
        ):
            raise DoesNotFit(
                f"needs shapes that differ in axis {axis} alone, got {', '.join(map(str, inputs))}"
            )
        return (*inputs[0][:axis], sum(shape[axis] for shape in inputs), *inputs[0][axis + 1 :])


@dataclass(frozen=True)
class Slice(Op):
    """x[..., start:stop] along the last axis. Of tokens: they stay tokens."""

    start: int
    stop: int

    def takes_tokens(self, place: int) -> bool | None:
        return None

    def shape(self, *inputs: Shape) -> Shape:
        if not 0 <= self.start < self.stop <= inputs[0][-1]:
            raise DoesNotFit(f"cannot cut {self.start} to {self.stop} out of {inputs[0][-1]}")
        return (*inputs[0][:-1], self.stop - self.start)


@dataclass(frozen=True)
class Flatten(Op):
    """All axes into one, channels slowest, whatever the memory layout."""

    def shape(self, *inputs: Shape) -> Shape:
        return (prod(inputs[0]),)
