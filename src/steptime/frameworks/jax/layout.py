"""The order of axes of images and weights in memory.

The order of the graph, with channels and outputs first, is called logical."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steptime.graph import Graph

IMAGE = 4  # axes, including the batch
# Ops whose matrices multiply from the right.
TRANSPOSED = ("dense", "gru", "lstm", "rnn")


@dataclass(frozen=True)
class Layout:
    """`last`: images are (batch, height, width, channels), kernels (height, width, channels,
    filters). `transposed`: matrices that are kept as (inputs, outputs), so that no step has to
    transpose them."""

    last: bool
    transposed: frozenset[str] = frozenset()

    @classmethod
    def for_graph(cls, graph: Graph, *, last: bool) -> Layout:
        transposed = set()
        for layer in graph:
            if layer.op.name not in TRANSPOSED:
                continue
            for name, weight in layer.weights.items():
                if len(weight.shape) == 2:
                    transposed.add(name)
        return cls(last, frozenset(transposed))

    @property
    def convolution(self) -> tuple[str, str, str]:
        """XLA's names of the axes of input, kernel and output."""
        return ("NHWC", "HWIO", "NHWC") if self.last else ("NCHW", "OIHW", "NCHW")

    def channel_axis(self, x: Any) -> int:
        return 3 if self.last and x.ndim == IMAGE else 1

    def all_but_channels(self, x: Any) -> tuple[int, ...]:
        return tuple(axis for axis in range(x.ndim) if axis != self.channel_axis(x))

    def axis(self, logical: int, shape: tuple[int, ...]) -> int:
        """The axis in memory, counted with the batch, of an axis of a sample's logical shape."""
        index = logical % len(shape)
        # (channels, height, width) lie at the axes 3, 1 and 2.
        if self.last and len(shape) == IMAGE - 1:
            return (3, 1, 2)[index]
        return index + 1

    def for_all_axes(self, pair: Any, rest: Any) -> tuple[Any, ...]:
        """A setting of height and width, as a setting of all four axes."""
        return (rest, *pair, rest) if self.last else (rest, rest, *pair)

    def per_channel(self, values: Any, x: Any) -> Any:
        """One value for each channel, in a shape that broadcasts against x."""
        return self.along(self.channel_axis(x), values, x)

    def along(self, axis: int, values: Any, x: Any) -> Any:
        """One value for each index of this axis of x, in a shape that broadcasts against x."""
        shape = [1] * x.ndim
        shape[axis] = -1
        return values.reshape(shape)

    def to_stored(self, x: Any) -> Any:
        """From the logical order; only images have another order in memory."""
        return x.transpose(0, 2, 3, 1) if self.last and x.ndim == IMAGE else x

    def to_logical(self, x: Any) -> Any:
        return x.transpose(0, 3, 1, 2) if self.last and x.ndim == IMAGE else x

    def weight_to_stored(self, name: str, weight: Any) -> Any:
        """Only kernels of convolutions have four axes."""
        if name in self.transposed:
            return weight.T
        return weight.transpose(2, 3, 1, 0) if self.last and weight.ndim == IMAGE else weight

    def weight_to_logical(self, name: str, weight: Any) -> Any:
        if name in self.transposed:
            return weight.T
        return weight.transpose(3, 2, 0, 1) if self.last and weight.ndim == IMAGE else weight
