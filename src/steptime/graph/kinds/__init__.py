"""The kinds of layers. Each states its exact semantics; a framework's lowering must compute just that."""

from steptime.graph.kind import Kind, kind_name
from steptime.graph.kinds.images import (
    AveragePool,
    BatchNorm,
    Conv,
    GlobalAveragePool,
    Lrn,
    MaxPool,
    PadChannels,
    Pads,
    Pool,
)
from steptime.graph.kinds.sequences import Attention, Embedding, Gru, Lstm, Positions, Rnn, TiedDense, TiedEmbedding
from steptime.graph.kinds.simple import (
    Add,
    Concat,
    Dense,
    Dropout,
    Flatten,
    Gelu,
    Input,
    LayerNorm,
    Relu,
    Scale,
    Sigmoid,
    Slice,
    Tanh,
)

KINDS: dict[str, type[Kind]] = {
    kind_name(kind): kind
    for kind in (
        Add, Attention, AveragePool, BatchNorm, Concat, Conv, Dense, Dropout, Embedding, Flatten, Gelu,
        GlobalAveragePool, Gru, Input, LayerNorm, Lrn, Lstm, MaxPool, PadChannels, Positions, Relu, Rnn, Scale, Sigmoid,
        Slice, Tanh, TiedDense, TiedEmbedding,
    )
}  # fmt: skip

__all__ = [
    "KINDS", "Add", "Attention", "AveragePool", "BatchNorm", "Concat", "Conv", "Dense", "Dropout", "Embedding",
    "Flatten", "Gelu", "GlobalAveragePool", "Gru", "Input", "LayerNorm", "Lrn", "Lstm", "MaxPool", "PadChannels",
    "Pads", "Pool", "Positions", "Relu", "Rnn", "Scale", "Sigmoid", "Slice", "Tanh", "TiedDense", "TiedEmbedding",
]  # fmt: skip
