"""One layer in its place: a op joined to its inputs, or a sentence that says why they do not fit."""

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
    vocabulary: int = 0  # more than 0: the output is tokens, whole numbers below this

    @property
    def reads(self) -> tuple[str, ...]:
        """The inputs whose values are needed: of a lender only the weight is."""
        return tuple(name for place, name in enumerate(self.inputs) if place != self.op.borrows)

    @property
    def weights(self) -> dict[str, Weight]:
        """Canonical names: 'conv1.weight'. Borrowed ones have their lender's."""
        owner = self.name if self.op.borrows is None else self.inputs[self.op.borrows]
        return {f"{owner}.{part}": w for part, w in self.op.weights(*self.input_shapes).items()}


def connect(op: Op, inputs: Sequence[Layer], *, name: str, network: str) -> Layer:
    """The one place where layers are checked, whether they come from the builder or from a file."""
    shapes = tuple(layer.shape for layer in inputs)
    try:
        _check(op, inputs, name)
        shape = op.shape(*shapes)
        if any(not isinstance(size, int) or size < 1 for size in shape):
            raise DoesNotFit(
                f"would have the shape {shape}; every size must be a whole number of at least 1"
            )
    except DoesNotFit as problem:
        origin = " and ".join(f"{layer.name!r} {layer.shape}" for layer in inputs)
        place = f" after {origin}" if origin else ""
        raise WrongGraph(f"{network}: layer {name!r} ({op.name}){place} {problem}.") from None
    return Layer(
        name, op, tuple(layer.name for layer in inputs), shapes, shape, _vocabulary(op, inputs)
    )


def _vocabulary(op: Op, inputs: Sequence[Layer]) -> int:
    if isinstance(op, Slice):
        return inputs[0].vocabulary
    return op.vocabulary if isinstance(op, Input) else 0


def _check(op: Op, inputs: Sequence[Layer], name: str) -> None:
    if not name.isidentifier() or iskeyword(name):  # frameworks write code with it
        raise DoesNotFit("needs a name of letters, digits and underscores")
    if len(inputs) != op.inputs:
        raise DoesNotFit(f"takes {op.inputs} inputs, found {len(inputs)}")
    for place, layer in enumerate(inputs):
        wanted = op.takes_tokens(place)
        if wanted is not None and wanted != bool(layer.vocabulary):
            raise DoesNotFit(
                "needs tokens" if wanted else "cannot take tokens; put an embedding between"
            )
        if isinstance(op, Embedding | TiedEmbedding) and layer.vocabulary > op.vocabulary:
            raise DoesNotFit(f"has {op.vocabulary} rows for tokens below {layer.vocabulary}")
    if op.borrows is not None:
        _check_lender(op, inputs)


def _check_lender(op: Op, inputs: Sequence[Layer]) -> None:
    assert op.borrows is not None
    lender = inputs[op.borrows]
    lent = lender.weights.get(f"{lender.name}.weight")
    needed = op.weights(*(layer.shape for layer in inputs))["weight"].shape
    if not isinstance(lender.op, Embedding) or lent is None or lent.shape != needed:
        found = f"{lender.op.name} {lent.shape if lent else '()'}"
        raise DoesNotFit(
            f"needs an embedding with a weight of {needed} to borrow from, found {found}"
        )
