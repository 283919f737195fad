"""One layer in its place: a kind joined to its inputs, or a sentence that says why they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword

from steptime.core.errors import WrongGraph
from steptime.graph.op import DoesNotFit, Kind, Shape, Weight
from steptime.graph.ops import Embedding, Input, Slice, TiedEmbedding


@dataclass(frozen=True)
class Layer:
    name: str
    kind: Kind
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    shape: Shape
    vocabulary: int = 0  # more than 0: the output is tokens, whole numbers below this

    @property
    def reads(self) -> tuple[str, ...]:
        """The inputs whose values are needed: of a lender only the weight is."""
        return tuple(name for place, name in enumerate(self.inputs) if place != self.kind.borrows)

    @property
    def weights(self) -> dict[str, Weight]:
        """Canonical names: 'conv1.weight'. Borrowed ones have their lender's."""
        owner = self.name if self.kind.borrows is None else self.inputs[self.kind.borrows]
        return {f"{owner}.{part}": w for part, w in self.kind.weights(*self.input_shapes).items()}


def connect(kind: Kind, inputs: Sequence[Layer], *, name: str, network: str) -> Layer:
    """The one place where layers are checked, whether they come from the builder or from a file."""
    shapes = tuple(layer.shape for layer in inputs)
    try:
        _check(kind, inputs, name)
        shape = kind.shape(*shapes)
        if any(not isinstance(size, int) or size < 1 for size in shape):
            raise DoesNotFit(
                f"would have the shape {shape}; every size must be a whole number of at least 1"
            )
    except DoesNotFit as problem:
        origin = " and ".join(f"{layer.name!r} {layer.shape}" for layer in inputs)
        place = f" after {origin}" if origin else ""
        raise WrongGraph(f"{network}: layer {name!r} ({kind.name}){place} {problem}.") from None
    return Layer(
        name, kind, tuple(layer.name for layer in inputs), shapes, shape, _vocabulary(kind, inputs)
    )


def _vocabulary(kind: Kind, inputs: Sequence[Layer]) -> int:
    if isinstance(kind, Slice):
        return inputs[0].vocabulary
    return kind.vocabulary if isinstance(kind, Input) else 0


def _check(kind: Kind, inputs: Sequence[Layer], name: str) -> None:
    if not name.isidentifier() or iskeyword(name):  # frameworks write code with it
        raise DoesNotFit("needs a name of letters, digits and underscores")
    if len(inputs) != kind.inputs:
        raise DoesNotFit(f"takes {kind.inputs} inputs, found {len(inputs)}")
    for place, layer in enumerate(inputs):
        wanted = kind.takes_tokens(place)
        if wanted is not None and wanted != bool(layer.vocabulary):
            raise DoesNotFit(
                "needs tokens" if wanted else "can not take tokens; put an embedding between"
            )
        if isinstance(kind, Embedding | TiedEmbedding) and layer.vocabulary > kind.vocabulary:
            raise DoesNotFit(f"has {kind.vocabulary} rows for tokens below {layer.vocabulary}")
    if kind.borrows is not None:
        _check_lender(kind, inputs)


def _check_lender(kind: Kind, inputs: Sequence[Layer]) -> None:
    assert kind.borrows is not None
    lender = inputs[kind.borrows]
    lent = lender.weights.get(f"{lender.name}.weight")
    needed = kind.weights(*(layer.shape for layer in inputs))["weight"].shape
    if not isinstance(lender.kind, Embedding) or lent is None or lent.shape != needed:
        found = f"{lender.kind.name} {lent.shape if lent else '()'}"
        raise DoesNotFit(
            f"needs an embedding with a weight of {needed} to borrow from, found {found}"
        )
