"""How images and weights lie in memory. The graph's own order, channels and outputs first, is called logical."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steptime.graph import Graph

IMAGE = 4  # axes, with the batch
TURNED = ("dense", "gru", "lstm", "rnn")


@dataclass(frozen=True)
class Layout:
    """`last`: images are (batch, height, width, channels) and kernels (height, width, channels, filters).
    `turned`: matrices that are kept as (inputs, outputs), so that no product has to turn them in every step."""

    last: bool
    turned: frozenset[str] = frozenset()

    @classmethod
    def of(cls, graph: Graph, *, last: bool) -> Layout:
        weights = [
            own for layer in graph if layer.op.name in TURNED for own in layer.weights.items()
        ]
        return cls(last, frozenset(name for name, weight in weights if len(weight.shape) == 2))

    @property
    def convolution(self) -> tuple[str, str, str]:
        """XLA's names of the axes of input, kernel and output."""
        return ("NHWC", "HWIO", "NHWC") if self.last else ("NCHW", "OIHW", "NCHW")

    def channel_axis(self, x: Any) -> int:
        return 3 if self.last and x.ndim == IMAGE else 1

    def all_but_channels(self, x: Any) -> tuple[int, ...]:
        return tuple(axis for axis in range(x.ndim) if axis != self.channel_axis(x))

    def axis(self, logical: int, shape: tuple[int, ...]) -> int:
        """Where the axis of a sample's logical shape lies, counted with the batch."""
        place = logical % len(shape)
        return (3, 1, 2)[place] if self.last and len(shape) == IMAGE - 1 else place + 1

    def around(self, pair: Any, rest: Any) -> tuple[Any, ...]:
        """A setting of height and width for all four axes."""
        return (rest, *pair, rest) if self.last else (rest, rest, *pair)

    def per_channel(self, values: Any, x: Any) -> Any:
        """One value for each channel, in the shape that meets x."""
        return self.along(self.channel_axis(x), values, x)

    def along(self, axis: int, values: Any, x: Any) -> Any:
        """One value for each place of this axis of x, in the shape that meets x."""
        form = [1] * x.ndim
        form[axis] = -1
        return values.reshape(form)

    def stored(self, x: Any) -> Any:
        """From the logical order; only images have another."""
        return x.transpose(0, 2, 3, 1) if self.last and x.ndim == IMAGE else x

    def logical(self, x: Any) -> Any:
        return x.transpose(0, 3, 1, 2) if self.last and x.ndim == IMAGE else x

    def stored_weight(self, name: str, weight: Any) -> Any:
        """Kernels of convolutions are the weights that have four axes."""
        if name in self.turned:
            return weight.T
        return weight.transpose(2, 3, 1, 0) if self.last and weight.ndim == IMAGE else weight

    def logical_weight(self, name: str, weight: Any) -> Any:
        if name in self.turned:
            return weight.T
        return weight.transpose(3, 2, 0, 1) if self.last and weight.ndim == IMAGE else weight
