"""What every op of layer answers: its output's shape, its weights, its multiply-adds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import prod, sqrt
from typing import Any, ClassVar

Shape = tuple[int, ...]


class DoesNotFit(Exception):
    """The inputs' shapes do not suit the layer; the builder adds the layer's name."""


@dataclass(frozen=True)
class Initial:
    """How a weight starts: 'uniform' within ±scale, 'truncated_normal' with that deviation (cut at two of them),
    'constant', or 'sinusoids' (fixed places in time, see `Positions`)."""

    law: str
    scale: float


@dataclass(frozen=True)
class Weight:
    shape: Shape
    initial: Initial
    trainable: bool = True

    @property
    def size(self) -> int:
        return prod(self.shape)


def fan_in_uniform(fan_in: int) -> Initial:
    """±1/√fan_in: what PyTorch's own layers start from."""
    return Initial("uniform", 1 / sqrt(fan_in))


@dataclass(frozen=True)
class Flops:
    """Floating point operations of one sample; a multiply-add is two. Only products are counted (matrix products and
    convolutions), as `torch.utils.flop_counter` does."""

    forward: int = 0
    weight_gradient: int = 0
    input_gradient: int = 0


@dataclass(frozen=True)
class Op:
    """What all ops share. A op's dataclass fields are its settings; they are the structure and go into the
    fingerprint, except those named in `not_structure`."""

    not_structure: ClassVar[tuple[str, ...]] = ()
    commutes: ClassVar[bool] = False
    borrows: ClassVar[int | None] = None  # the input whose layer lends its weights

    @property
    def inputs(self) -> int:
        """How many."""
        return 1

    def takes_tokens(self, place: int) -> bool | None:
        """Whether the input at this place must be tokens, or must not; None: either."""
        return False

    @property
    def name(self) -> str:
        return op_name(type(self))

    def settings(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def structure(self) -> dict[str, Any]:
        return {k: v for k, v in self.settings().items() if k not in self.not_structure}

    def shape(self, *inputs: Shape) -> Shape:
        return inputs[0]

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        return {}

    def flops(self, *inputs: Shape) -> Flops:
        return Flops()

    def weights_read(self, batch: int, *inputs: Shape) -> int:
        """How many values of its weights a forward pass must read at the least."""
        return sum(weight.size for weight in self.weights(*inputs).values())


def op_name(op: type[Op]) -> str:
    """CamelCase to snake_case: MaxPool is 'max_pool'."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in op.__name__).lstrip("_")


def expect(shape: Shape, rank: int, wanted: str) -> None:
    if len(shape) != rank:
        raise DoesNotFit(f"needs {wanted}, got shape {shape}")
