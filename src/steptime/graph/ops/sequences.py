"""Ops on tokens (time,) and sequences (time, features)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
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

# Of embeddings and learned positions.
DEFAULT = Initializer("uniform", 0.1)


@dataclass(frozen=True)
class Embedding(Op):
    """Row `token` of weight (vocabulary, width)."""

    not_structure = ("initializer",)
    vocabulary: int
    width: int
    initializer: Initializer | None = None

    def takes_tokens(self, index: int) -> bool:
        return True

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0], self.width)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        initializer = self.initializer or DEFAULT
        return {"weight": Weight((self.vocabulary, self.width), initializer)}

    def weights_read(self, batch: int, *inputs: Shape) -> int:
        # Each token reads a row; at most all rows are read.
        rows = min(self.vocabulary, batch * prod(inputs[0]))
        return rows * self.width


@dataclass(frozen=True)
class TiedEmbedding(Op):
    """An embedding with the weight of another one, whose output is the second input.

    The second input names the owner of the weight; its values are not read."""

    tied_input: ClassVar[int | None] = 1
    vocabulary: int
    width: int

    @property
    def inputs(self) -> int:
        return 2

    def takes_tokens(self, index: int) -> bool:
        return index == 0

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0], self.width)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        return {"weight": Weight((self.vocabulary, self.width), DEFAULT)}

    def weights_read(self, batch: int, *inputs: Shape) -> int:
        # Each token reads a row; at most all rows are read.
        rows = min(self.vocabulary, batch * prod(inputs[0]))
        return rows * self.width


@dataclass(frozen=True)
class TiedDense(Op):
    """y = x · weightᵀ with the weight (units, features) of an embedding.

    The second input is the output of that embedding; its values are not read."""

    tied_input: ClassVar[int | None] = 1
    units: int

    @property
    def inputs(self) -> int:
        return 2

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0][:-1], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        return {"weight": Weight((self.units, inputs[0][-1]), DEFAULT)}

    def flops(self, *inputs: Shape) -> Flops:
        flops = 2 * prod(inputs[0]) * self.units
        return Flops(flops, flops, flops)


@dataclass(frozen=True)
class Positions(Op):
    """x + weight, one row per position in time.

    `learned`: the weight is trainable. Else it is the fixed one of Vaswani et al., 2017:
    sin(t / 10000^(2i/width)) in the even columns 2i, cos of the same in the odd columns 2i + 1."""

    not_structure = ("initializer",)
    learned: bool = True
    initializer: Initializer | None = None

    def shape(self, *inputs: Shape) -> Shape:
        _expect_sequence(inputs[0])
        if not self.learned and inputs[0][1] % 2:
            raise DoesNotFit(f"needs an even number of features, got shape {inputs[0]}")
        return inputs[0]

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        initializer = self.initializer or DEFAULT
        if not self.learned:
            initializer = Initializer("sinusoids", 1.0)
        return {"weight": Weight(inputs[0], initializer, trainable=self.learned)}


@dataclass(frozen=True)
class Attention(Op):
    """Attention of query, keys and values (time, features), which are already projected.

    Features split evenly into `heads`. Each head is softmax(scale · q · kᵀ) · v over the keys'
    time, and the results are concatenated. `causal`: position t sees keys up to t.
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
            expect_rank(shape, 2, "sequences (time, features)")
        fits = query[1] == keys[1] and keys == values
        # Position t of the query sees keys up to t, so both have the same positions.
        if self.causal and query[0] != keys[0]:
            fits = False
        if not fits:
            raise DoesNotFit(
                f"needs query, keys and values that go together, got {query}, {keys} and {values}"
            )
        if self.heads < 1 or query[1] % self.heads:
            raise DoesNotFit(f"cannot split {query[1]} features into {self.heads} heads")
        return query

    def scale_for(self, features: int) -> float:
        return float(self.scale or (features / self.heads) ** -0.5)

    def flops(self, *inputs: Shape) -> Flops:
        query, keys, _ = inputs
        # A causal mask saves nothing that is counted.
        product = 2 * query[0] * keys[0] * query[1]
        return Flops(2 * product, 0, 4 * product)

    def least_flops_share(self, *inputs: Shape) -> float:
        """A causal mask hides almost half of the products."""
        time = inputs[0][0]
        return (time + 1) / (2 * time) if self.causal else 1.0


@dataclass(frozen=True)
class Lstm(Op):
    """One layer over time; the state starts at 0.

    gates = x · weight_inputᵀ + h · weight_hiddenᵀ + bias, in the order input, forget, candidate,
    output; c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c'). There is one bias."""

    not_structure = ("initializer",)
    units: int
    initializer: Initializer | None = None

    def shape(self, *inputs: Shape) -> Shape:
        _expect_sequence(inputs[0])
        return (inputs[0][0], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        initializer = self.initializer or fan_in_uniform(self.units)
        return {
            "weight_input": Weight((4 * self.units, inputs[0][1]), initializer),
            "weight_hidden": Weight((4 * self.units, self.units), initializer),
            "bias": Weight((4 * self.units,), initializer),
        }

    def flops(self, *inputs: Shape) -> Flops:
        return recurrent_flops(4, self.units, *inputs[0])


@dataclass(frozen=True)
class Gru(Op):
    """One layer over time; the state starts at 0. Gates are in the order reset, update, candidate.

    a = x · weight_inputᵀ + bias, b = h · weight_hiddenᵀ; r = σ(a_r + b_r); z = σ(a_z + b_z);
    n = tanh(a_n + r (b_n + bias_hidden)); h' = (1 − z) n + z h."""

    not_structure = ("initializer",)
    units: int
    initializer: Initializer | None = None

    def shape(self, *inputs: Shape) -> Shape:
        _expect_sequence(inputs[0])
        return (inputs[0][0], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        initializer = self.initializer or fan_in_uniform(self.units)
        return {
            "weight_input": Weight((3 * self.units, inputs[0][1]), initializer),
            "weight_hidden": Weight((3 * self.units, self.units), initializer),
            "bias": Weight((3 * self.units,), initializer),
            "bias_hidden": Weight((self.units,), initializer),
        }

    def flops(self, *inputs: Shape) -> Flops:
        return recurrent_flops(3, self.units, *inputs[0])


@dataclass(frozen=True)
class Rnn(Op):
    """One layer over time; the state starts at 0.

    h' = act(x · weight_inputᵀ + h · weight_hiddenᵀ + bias); act is tanh or, with `relu`,
    max(·, 0)."""

    not_structure = ("initializer",)
    units: int
    relu: bool = False
    initializer: Initializer | None = None

    def shape(self, *inputs: Shape) -> Shape:
        _expect_sequence(inputs[0])
        return (inputs[0][0], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        initializer = self.initializer or fan_in_uniform(self.units)
        return {
            "weight_input": Weight((self.units, inputs[0][1]), initializer),
            "weight_hidden": Weight((self.units, self.units), initializer),
            "bias": Weight((self.units,), initializer),
        }

    def flops(self, *inputs: Shape) -> Flops:
        return recurrent_flops(1, self.units, *inputs[0])


def _expect_sequence(shape: Shape) -> None:
    expect_rank(shape, 2, "a sequence (time, features)")


def recurrent_flops(gates: int, units: int, steps: int, features: int) -> Flops:
    from_input = 2 * gates * units * features
    from_hidden = 2 * gates * units * units
    forward = steps * (from_input + from_hidden)
    # The gradient of the weights needs the gradient through time. That one stops at the first
    # step, whose state is a constant.
    through_time = (steps - 1) * from_hidden
    return Flops(forward, forward + through_time, steps * from_input)
