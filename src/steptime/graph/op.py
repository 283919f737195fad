"""What every op must answer: its output's shape, its weights and its FLOPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import prod, sqrt
from types import MappingProxyType
from typing import Any, ClassVar

# Without the batch: (channels, height, width), (time, features) or (features,).
Shape = tuple[int, ...]

NO_RENAMES: Mapping[str, str] = MappingProxyType({})


class DoesNotFit(Exception):
    """The inputs' shapes do not suit the layer; the builder adds the layer's name."""


@dataclass(frozen=True)
class Initializer:
    """How a weight starts.

    `distribution` is 'uniform' within ±scale, 'truncated_normal' with that standard deviation
    (cut at two of them), 'constant', or 'sinusoids' (fixed positions in time, see `Positions`)."""

    distribution: str
    scale: float


@dataclass(frozen=True)
class Weight:
    shape: Shape
    initializer: Initializer
    # False: moving statistics, and positions that are fixed.
    trainable: bool = True

    @property
    def size(self) -> int:
        return prod(self.shape)


def fan_in_uniform(fan_in: int) -> Initializer:
    """±1/√fan_in, the default of PyTorch's layers."""
    return Initializer("uniform", 1 / sqrt(fan_in))


@dataclass(frozen=True)
class Flops:
    """Floating point operations of one sample; a multiply-add is two.

    Only matrix products and convolutions are counted, as `torch.utils.flop_counter` does."""

    forward: int = 0
    weight_gradient: int = 0
    input_gradient: int = 0


@dataclass(frozen=True)
class Op:
    """What all ops share.

    The dataclass fields of an op are its settings. They are the structure of the network and go
    into its fingerprint, except those named in `not_structure`."""

    # Initializers, because networks that start from other weights do the same work.
    not_structure: ClassVar[tuple[str, ...]] = ()
    # Fingerprints are stored with results, so a renamed setting keeps its old name in the digest.
    digest_names: ClassVar[Mapping[str, str]] = NO_RENAMES
    # True: the order of the inputs does not matter, neither to the result nor to the fingerprint.
    commutes: ClassVar[bool] = False
    # The input whose layer owns the weights that this op uses too (tied weights).
    tied_input: ClassVar[int | None] = None

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return 1

    def takes_tokens(self, index: int) -> bool | None:
        """Whether the input at this index must be tokens or must not; None means either."""
        return False

    @property
    def name(self) -> str:
        return op_name(type(self))

    def settings(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def structure(self) -> dict[str, Any]:
        """The settings that go into the fingerprint, under the names that it digests."""
        digested = {}
        for name, value in self.settings().items():
            if name not in self.not_structure:
                digested[self.digest_names.get(name, name)] = value
        return digested

    def shape(self, *inputs: Shape) -> Shape:
        return inputs[0]

    def weights(self, *inputs: Shape) -> dict[str, Weight]:
        return {}

    def flops(self, *inputs: Shape) -> Flops:
        return Flops()

    def least_flops_share(self, *inputs: Shape) -> float:
        """Of the counted FLOPs, what the fastest algorithm in use needs."""
        return 1.0

    def weights_read(self, batch: int, *inputs: Shape) -> int:
        """The least number of weight values that a forward pass must read."""
        return sum(weight.size for weight in self.weights(*inputs).values())


def op_name(op: type[Op]) -> str:
    """CamelCase to snake_case: MaxPool is 'max_pool'."""
    letters = [f"_{letter.lower()}" if letter.isupper() else letter for letter in op.__name__]
    return "".join(letters).lstrip("_")


def expect_rank(shape: Shape, rank: int, description: str) -> None:
    if len(shape) != rank:
        raise DoesNotFit(f"needs {description}, got shape {shape}")
