"""A layer: an op connected to its inputs, or an error that says why they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword

from steptime.core.errors import WrongGraph
from steptime.graph.op import DoesNotFit, Op, Shape, Weight
from steptime.graph.ops import Embedding, Input, Slice, TiedEmbedding


@dataclass(frozen=True)
class Layer:
    name: str
    op: Op
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    shape: Shape
    # More than 0: the output is tokens, whole numbers below this.
    vocabulary: int = 0

    @property
    def value_inputs(self) -> tuple[str, ...]:
        """The inputs whose values are read; of an input with a tied weight only the weight is."""
        return tuple(name for index, name in enumerate(self.inputs) if index != self.op.tied_input)

    @property
    def weights(self) -> dict[str, Weight]:
        """By canonical name, such as 'conv1.weight'. A tied one has the name of its owner's."""
        owner = self.name if self.op.tied_input is None else self.inputs[self.op.tied_input]
        weights = self.op.weights(*self.input_shapes)
        return {f"{owner}.{role}": weight for role, weight in weights.items()}


def connect(op: Op, inputs: Sequence[Layer], *, name: str, network: str) -> Layer:
    """The single check of layers, whether they come from the builder or from a file."""
    input_shapes = tuple(layer.shape for layer in inputs)
    try:
        _check(op, inputs, name)
        shape = op.shape(*input_shapes)
        # A user may pass any number; every framework needs positive integers.
        if any(not isinstance(size, int) or size < 1 for size in shape):
            raise DoesNotFit(
                f"would have the shape {shape}; every size must be a whole number of at least 1"
            )
    except DoesNotFit as problem:
        sources = " and ".join(f"{layer.name!r} {layer.shape}" for layer in inputs)
        after = f" after {sources}" if sources else ""
        raise WrongGraph(f"{network}: layer {name!r} ({op.name}){after} {problem}.") from None
    input_names = tuple(layer.name for layer in inputs)
    return Layer(name, op, input_names, input_shapes, shape, _vocabulary(op, inputs))


def _vocabulary(op: Op, inputs: Sequence[Layer]) -> int:
    # All other ops turn tokens into floats, or take none.
    if isinstance(op, Slice):
        return inputs[0].vocabulary
    return op.vocabulary if isinstance(op, Input) else 0


def _check(op: Op, inputs: Sequence[Layer], name: str) -> None:
    # Frameworks generate code with the name as an identifier.
    if not name.isidentifier() or iskeyword(name):
        raise DoesNotFit("needs a name of letters, digits and underscores")
    if len(inputs) != op.inputs:
        raise DoesNotFit(f"takes {op.inputs} inputs, found {len(inputs)}")
    for index, layer in enumerate(inputs):
        _check_tokens(op, index, layer)
    if op.tied_input is not None:
        _check_tied_weight(op, inputs, inputs[op.tied_input])


def _check_tokens(op: Op, index: int, layer: Layer) -> None:
    needs_tokens = op.takes_tokens(index)
    if needs_tokens is True and not layer.vocabulary:
        raise DoesNotFit("needs tokens")
    if needs_tokens is False and layer.vocabulary:
        raise DoesNotFit("cannot take tokens; put an embedding between")
    if isinstance(op, Embedding | TiedEmbedding) and layer.vocabulary > op.vocabulary:
        raise DoesNotFit(f"has {op.vocabulary} rows for tokens below {layer.vocabulary}")


def _check_tied_weight(op: Op, inputs: Sequence[Layer], owner: Layer) -> None:
    weight = owner.weights.get(f"{owner.name}.weight")
    needed = op.weights(*(layer.shape for layer in inputs))["weight"].shape
    if not isinstance(owner.op, Embedding) or weight is None or weight.shape != needed:
        shape = weight.shape if weight else "()"
        raise DoesNotFit(
            f"needs an embedding with a weight of {needed} to tie to, found {owner.op.name} {shape}"
        )
