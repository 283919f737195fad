"""The ops of layers. Each states its exact semantics; a framework's lowering must compute just that."""

from steptime.graph.op import Op, op_name
from steptime.graph.ops.images import (
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
from steptime.graph.ops.sequences import (
    Attention,
    Embedding,
    Gru,
    Lstm,
    Positions,
    Rnn,
    TiedDense,
    TiedEmbedding,
)
from steptime.graph.ops.simple import (
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

OPS: dict[str, type[Op]] = {
    op_name(op): op
    for op in (
        Add, Attention, AveragePool, BatchNorm, Concat, Conv, Dense, Dropout, Embedding, Flatten, Gelu,
        GlobalAveragePool, Gru, Input, LayerNorm, Lrn, Lstm, MaxPool, PadChannels, Positions, Relu, Rnn, Scale, Sigmoid,
        Slice, Tanh, TiedDense, TiedEmbedding,
    )
}  # fmt: skip

__all__ = [
    "OPS", "Add", "Attention", "AveragePool", "BatchNorm", "Concat", "Conv", "Dense", "Dropout", "Embedding",
    "Flatten", "Gelu", "GlobalAveragePool", "Gru", "Input", "LayerNorm", "Lrn", "Lstm", "MaxPool", "PadChannels",
    "Pads", "Pool", "Positions", "Relu", "Rnn", "Scale", "Sigmoid", "Slice", "Tanh", "TiedDense", "TiedEmbedding",
]  # fmt: skip
