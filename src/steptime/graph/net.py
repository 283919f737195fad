"""The builder of networks: a file that calls it reads like the table of the paper."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from steptime.core.errors import WrongGraph
from steptime.graph import ops
from steptime.graph.graph import Graph, assemble
from steptime.graph.layer import Layer, connect
from steptime.graph.op import Initializer, Op, Shape

Size = int | tuple[int, int]


@dataclass(frozen=True)
class Tensor:
    """A layer's output while the network is being written."""

    name: str
    shape: Shape


class Net:
    """Adds layers one by one. Every method returns the new layer's output."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._layers: dict[str, Layer] = {}
        self._counts: Counter[str] = Counter()

    def graph(self, output: Tensor) -> Graph:
        layer = self._layer_of(output, "the output")
        return assemble(self.name, list(self._layers.values()), layer.name)

    def layer(self, op: Op, *inputs: Tensor, name: str = "") -> Tensor:
        """Adds a layer. The methods below are short forms of this one."""
        self._counts[op.name] += 1
        # Numbered by op, so that a new relu does not rename the convolutions after it.
        name = name or f"{op.name}{self._counts[op.name]}"
        if name in self._layers:
            raise WrongGraph(
                f"{self.name}: two layers are called {name!r}; give one of them another name."
            )
        sources = [self._layer_of(tensor, f"layer {name!r}") for tensor in inputs]
        layer = connect(op, sources, name=name, network=self.name)
        self._layers[name] = layer
        return Tensor(name, layer.shape)

    def _layer_of(self, tensor: Tensor, user: str) -> Layer:
        if not isinstance(tensor, Tensor) or tensor.name not in self._layers:
            raise WrongGraph(
                f"{self.name}: {user} must come from a layer of this network, found {tensor!r}."
            )
        return self._layers[tensor.name]

    def input(self, *dims: int) -> Tensor:
        return self.layer(ops.Input(dims), name="input")

    def tokens(self, length: int, vocabulary: int) -> Tensor:
        return self.layer(ops.Input((length,), vocabulary), name="input")

    def dense(
        self,
        x: Tensor,
        units: int,
        *,
        bias: bool = True,
        initializer: Initializer | None = None,
        bias_initializer: Initializer | None = None,
        name: str = "",
    ) -> Tensor:
        op = ops.Dense(units, bias, initializer, bias_initializer)
        return self.layer(op, x, name=name)

    def conv(
        self,
        x: Tensor,
        filters: int,
        kernel: Size,
        *,
        stride: Size = 1,
        padding: Size | str = 0,
        groups: int = 1,
        dilation: Size = 1,
        bias: bool = True,
        initializer: Initializer | None = None,
        bias_initializer: Initializer | None = None,
        name: str = "",
    ) -> Tensor:
        """`padding='same'` is TensorFlow's rule: outputs = ceil(inputs / stride).

        If the padding is odd, the larger half goes after the image."""
        window = _pair(kernel)
        hop = _pair(stride)
        gap = _pair(dilation)
        # The cells that a window spans, with the gaps of its dilation.
        reach = ((window[0] - 1) * gap[0] + 1, (window[1] - 1) * gap[1] + 1)
        op = ops.Conv(
            filters=filters,
            kernel=window,
            stride=hop,
            padding=_pads(x, padding, reach, hop),
            dilation=gap,
            groups=groups,
            bias=bias,
            initializer=initializer,
            bias_initializer=bias_initializer,
        )
        return self.layer(op, x, name=name)

    def max_pool(
        self,
        x: Tensor,
        kernel: Size,
        *,
        stride: Size | None = None,
        padding: Size | str = 0,
        ceil: bool = False,
        name: str = "",
    ) -> Tensor:
        window = _pair(kernel)
        hop = _pair(stride or kernel)
        op = ops.MaxPool(window, hop, _pads(x, padding, window, hop), ceil)
        return self.layer(op, x, name=name)

    def average_pool(
        self,
        x: Tensor,
        kernel: Size,
        *,
        stride: Size | None = None,
        padding: Size | str = 0,
        ceil: bool = False,
        name: str = "",
    ) -> Tensor:
        window = _pair(kernel)
        hop = _pair(stride or kernel)
        op = ops.AveragePool(window, hop, _pads(x, padding, window, hop), ceil)
        return self.layer(op, x, name=name)

    def global_average_pool(self, x: Tensor, *, name: str = "") -> Tensor:
        return self.layer(ops.GlobalAveragePool(), x, name=name)

    def batch_norm(
        self, x: Tensor, *, momentum: float = 0.1, epsilon: float = 1e-5, name: str = ""
    ) -> Tensor:
        return self.layer(ops.BatchNorm(momentum, epsilon), x, name=name)

    def relu(self, x: Tensor, *, name: str = "") -> Tensor:
        return self.layer(ops.Relu(), x, name=name)

    def tanh(self, x: Tensor, *, name: str = "") -> Tensor:
        return self.layer(ops.Tanh(), x, name=name)

    def sigmoid(self, x: Tensor, *, name: str = "") -> Tensor:
        return self.layer(ops.Sigmoid(), x, name=name)

    def dropout(self, x: Tensor, rate: float, *, name: str = "") -> Tensor:
        return self.layer(ops.Dropout(rate), x, name=name)

    def add(self, a: Tensor, b: Tensor, *, name: str = "") -> Tensor:
        return self.layer(ops.Add(), a, b, name=name)

    def flatten(self, x: Tensor, *, name: str = "") -> Tensor:
        return self.layer(ops.Flatten(), x, name=name)

    def gelu(self, x: Tensor, *, tanh: bool = False, name: str = "") -> Tensor:
        return self.layer(ops.Gelu(tanh), x, name=name)

    def layer_norm(self, x: Tensor, *, epsilon: float = 1e-5, name: str = "") -> Tensor:
        return self.layer(ops.LayerNorm(epsilon), x, name=name)

    def scale(self, x: Tensor, factor: float, *, name: str = "") -> Tensor:
        return self.layer(ops.Scale(factor), x, name=name)

    def concat(self, *tensors: Tensor, axis: int = 0, name: str = "") -> Tensor:
        return self.layer(ops.Concat(len(tensors), axis), *tensors, name=name)

    def slice(self, x: Tensor, start: int, stop: int, *, name: str = "") -> Tensor:
        return self.layer(ops.Slice(start, stop), x, name=name)

    def lrn(
        self,
        x: Tensor,
        size: int = 5,
        *,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 1.0,
        name: str = "",
    ) -> Tensor:
        return self.layer(ops.Lrn(size, alpha, beta, k), x, name=name)

    def pad_channels(self, x: Tensor, before: int, after: int, *, name: str = "") -> Tensor:
        return self.layer(ops.PadChannels(before, after), x, name=name)

    def embedding(
        self,
        x: Tensor,
        vocabulary: int,
        width: int,
        *,
        initializer: Initializer | None = None,
        name: str = "",
    ) -> Tensor:
        return self.layer(ops.Embedding(vocabulary, width, initializer), x, name=name)

    def tied_embedding(self, x: Tensor, embedding: Tensor, *, name: str = "") -> Tensor:
        """`embedding` is the output of the embedding whose weight is used here too."""
        op = ops.TiedEmbedding(self._rows(embedding), embedding.shape[-1])
        return self.layer(op, x, embedding, name=name)

    def tied_dense(self, x: Tensor, embedding: Tensor, *, name: str = "") -> Tensor:
        """`embedding` is the output of the embedding whose weight maps features to scores."""
        return self.layer(ops.TiedDense(self._rows(embedding)), x, embedding, name=name)

    def _rows(self, embedding: Tensor) -> int:
        # Any other layer gets an arbitrary count here: `connect` says what is wrong with it.
        op = self._layer_of(embedding, "an embedding to tie to").op
        return int(getattr(op, "vocabulary", 1))

    def positions(
        self,
        x: Tensor,
        *,
        learned: bool = True,
        initializer: Initializer | None = None,
        name: str = "",
    ) -> Tensor:
        return self.layer(ops.Positions(learned, initializer), x, name=name)

    def attention(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        *,
        heads: int,
        causal: bool = False,
        scale: float = 0.0,
        name: str = "",
    ) -> Tensor:
        op = ops.Attention(heads, causal, scale)
        return self.layer(op, query, keys, values, name=name)

    def lstm(
        self, x: Tensor, units: int, *, initializer: Initializer | None = None, name: str = ""
    ) -> Tensor:
        return self.layer(ops.Lstm(units, initializer), x, name=name)

    def gru(
        self, x: Tensor, units: int, *, initializer: Initializer | None = None, name: str = ""
    ) -> Tensor:
        return self.layer(ops.Gru(units, initializer), x, name=name)

    def rnn(
        self,
        x: Tensor,
        units: int,
        *,
        relu: bool = False,
        initializer: Initializer | None = None,
        name: str = "",
    ) -> Tensor:
        return self.layer(ops.Rnn(units, relu, initializer), x, name=name)


def _pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _pads(x: Tensor, padding: Size | str, reach: tuple[int, int], hop: tuple[int, int]) -> ops.Pads:
    if not isinstance(padding, str):
        vertical, horizontal = _pair(padding)
        return ((vertical, vertical), (horizontal, horizontal))
    if padding != "same":
        raise WrongGraph(
            f"The padding after {x.name!r} {x.shape} must be a number or 'same', found {padding!r}."
        )
    if not isinstance(x, Tensor) or len(x.shape) != 3 or min(hop) < 1:
        # Wrong input: the op itself says what it needs.
        return ((0, 0), (0, 0))
    return (_same_pads(x.shape[1], reach[0], hop[0]), _same_pads(x.shape[2], reach[1], hop[1]))


def _same_pads(size: int, window: int, step: int) -> tuple[int, int]:
    # Division that rounds up.
    outputs = -(-size // step)
    total = max((outputs - 1) * step + window - size, 0)
    return total // 2, total - total // 2
