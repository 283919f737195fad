"""Kinds that work on tokens (time,) and sequences (time, features)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

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


@dataclass(frozen=True)
class Embedding(Op):
    """Row `token` of weight (vocabulary, width)."""

    not_structure = ("initial",)
    vocabulary: int
    width: int
    initial: Initial | None = None

    def takes_tokens(self, place: int) -> bool:
        return True

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0], self.width)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        return {
            "weight": Weight((self.vocabulary, self.width), self.initial or Initial("uniform", 0.1))
        }

    def weights_read(self, batch: int, *inputs: Shape) -> int:
        return min(self.vocabulary, batch * prod(inputs[0])) * self.width


@dataclass(frozen=True)
class TiedEmbedding(Op):
    """The rows of another embedding, whose output is the second input: its weight is used, not its values."""

    borrows: ClassVar[int | None] = 1
    vocabulary: int
    width: int

    @property
    def inputs(self) -> int:
        return 2

    def takes_tokens(self, place: int) -> bool:
        return place == 0

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0], self.width)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        return {"weight": Weight((self.vocabulary, self.width), Initial("uniform", 0.1))}

    def weights_read(self, batch: int, *inputs: Shape) -> int:
        return min(self.vocabulary, batch * prod(inputs[0])) * self.width


@dataclass(frozen=True)
class TiedDense(Op):
    """y = x · weightᵀ with the weight (units, features) of the embedding whose output is the second input."""

    borrows: ClassVar[int | None] = 1
    units: int

    @property
    def inputs(self) -> int:
        return 2

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0][:-1], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        return {"weight": Weight((self.units, inputs[0][-1]), Initial("uniform", 0.1))}

    def flops(self, *inputs: Shape) -> Flops:
        once = 2 * prod(inputs[0]) * self.units
        return Flops(once, once, once)


@dataclass(frozen=True)
class Positions(Op):
    """x + weight, one row per place in time. `learned`: a trainable weight; else the fixed one of Vaswani et al.,
    2017: sin(t / 10000^(2i/width)) in the even columns 2i, cos of the same in the odd columns 2i + 1."""

    not_structure = ("initial",)
    learned: bool = True
    initial: Initial | None = None

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 2, "a sequence (time, features)")
        if not self.learned and inputs[0][1] % 2:
            raise DoesNotFit(f"needs an even number of features, got shape {inputs[0]}")
        return inputs[0]

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        law = (
            (self.initial or Initial("uniform", 0.1)) if self.learned else Initial("sinusoids", 1.0)
        )
        return {"weight": Weight(inputs[0], law, trainable=self.learned)}


@dataclass(frozen=True)
class Attention(Op):
    """Of query, keys and values (time, features), already projected. Features split evenly into `heads`; in each
    softmax(scale · q · kᵀ) · v over the keys' time, results side by side again. `causal`: place t sees keys up to t.
    `scale` 0 means 1 / √(features / heads)."""

    heads: int
    causal: bool = False
    scale: float = 0.0

    @property
    def inputs(self) -> int:
        return 3

    def shape(self, *inputs: Shape) -> Shape:
        query, keys, values = inputs
        for shape in inputs:
            expect(shape, 2, "sequences (time, features)")
        if query[1] != keys[1] or keys != values or (self.causal and query[0] != keys[0]):
            raise DoesNotFit(
                f"needs query, keys and values that go together, got {query}, {keys} and {values}"
            )
        if self.heads < 1 or query[1] % self.heads:
            raise DoesNotFit(f"cannot split {query[1]} features into {self.heads} heads")
        return query

    def scale_for(self, features: int) -> float:
        return float(self.scale or (features / self.heads) ** -0.5)

    def flops(self, *inputs: Shape) -> Flops:
        once = (
            2 * inputs[0][0] * inputs[1][0] * inputs[0][1]
        )  # the mask saves nothing that is counted
        return Flops(2 * once, 0, 4 * once)


@dataclass(frozen=True)
class Lstm(Op):
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
        return recurrent_flops(4, self.units, *inputs[0])


@dataclass(frozen=True)
class Gru(Op):
    """One layer over time, state starts at 0; gates in the order reset, update, candidate. a = x · weight_inputᵀ +
    bias, b = h · weight_hiddenᵀ; r = σ(a_r + b_r); z = σ(a_z + b_z); n = tanh(a_n + r (b_n + bias_hidden));
    h' = (1 − z) n + z h."""

    not_structure = ("initial",)
    units: int
    initial: Initial | None = None

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 2, "a sequence (time, features)")
        return (inputs[0][0], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        law = self.initial or fan_in_uniform(self.units)
        return {
            "weight_input": Weight((3 * self.units, inputs[0][1]), law),
            "weight_hidden": Weight((3 * self.units, self.units), law),
            "bias": Weight((3 * self.units,), law),
            "bias_hidden": Weight((self.units,), law),
        }

    def flops(self, *inputs: Shape) -> Flops:
        return recurrent_flops(3, self.units, *inputs[0])


@dataclass(frozen=True)
class Rnn(Op):
    """One layer over time, state starts at 0: h' = act(x · weight_inputᵀ + h · weight_hiddenᵀ + bias), act is tanh
    or, with `relu`, max(·, 0)."""

    not_structure = ("initial",)
    units: int
    relu: bool = False
    initial: Initial | None = None

    def shape(self, *inputs: Shape) -> Shape:
        expect(inputs[0], 2, "a sequence (time, features)")
        return (inputs[0][0], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        law = self.initial or fan_in_uniform(self.units)
        return {
            "weight_input": Weight((self.units, inputs[0][1]), law),
            "weight_hidden": Weight((self.units, self.units), law),
            "bias": Weight((self.units,), law),
        }

    def flops(self, *inputs: Shape) -> Flops:
        return recurrent_flops(1, self.units, *inputs[0])


def recurrent_flops(gates: int, units: int, steps: int, features: int) -> Flops:
    from_input, from_hidden = (2 * gates * units * size for size in (features, units))
    forward = steps * (from_input + from_hidden)
    # The weights' gradient needs the one through time, which stops at the first step: its state is a constant.
    through_time = (steps - 1) * from_hidden
    return Flops(forward, forward + through_time, steps * from_input)
