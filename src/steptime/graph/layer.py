"""One layer in its place: a kind joined to its inputs, or a sentence that says why they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword

from steptime.core.errors import WrongGraph
from steptime.graph.kind import DoesNotFit, Kind, Shape, Weight
from steptime.graph.kinds import Embedding, Input


@dataclass(frozen=True)
class Layer:
    name: str
    kind: Kind
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    shape: Shape

    @property
    def weights(self) -> dict[str, Weight]:
        """Canonical names: 'conv1.weight'."""
        return {f"{self.name}.{part}": w for part, w in self.kind.weights(*self.input_shapes).items()}

    @property
    def vocabulary(self) -> int:
        """More than 0: the output is tokens, whole numbers below this."""
        return self.kind.vocabulary if isinstance(self.kind, Input) else 0


def connect(kind: Kind, inputs: Sequence[Layer], *, name: str, network: str) -> Layer:
    """The one place where layers are checked, whether they come from the builder or from a file."""
    shapes = tuple(layer.shape for layer in inputs)
    try:
        _check(kind, inputs, name)
        shape = kind.shape(*shapes)
        if any(size < 1 for size in shape):
            raise DoesNotFit(f"would have the shape {shape}; every size must be at least 1")
    except DoesNotFit as problem:
        origin = " and ".join(f"{layer.name!r} {layer.shape}" for layer in inputs)
        place = f" after {origin}" if origin else ""
        raise WrongGraph(f"{network}: layer {name!r} ({kind.name}){place} {problem}.") from None
    return Layer(name, kind, tuple(layer.name for layer in inputs), shapes, shape)


def _check(kind: Kind, inputs: Sequence[Layer], name: str) -> None:
    if not name.isidentifier() or iskeyword(name):  # frameworks write code with it
        raise DoesNotFit("needs a name of letters, digits and underscores")
    if len(inputs) != kind.inputs:
        raise DoesNotFit(f"takes {kind.inputs} inputs, found {len(inputs)}")
    embeds = isinstance(kind, Embedding)
    for layer in inputs:
        if embeds != bool(layer.vocabulary):
            raise DoesNotFit("needs tokens" if embeds else "can not take tokens; put an embedding between")
        if isinstance(kind, Embedding) and layer.vocabulary > kind.vocabulary:
            raise DoesNotFit(f"has {kind.vocabulary} rows for tokens below {layer.vocabulary}")
