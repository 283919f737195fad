"""Networks of one layer: what a single product, convolution or recurrence costs.

The batch size is the number of rows of a product. A training step computes the gradient of the
weights and not of the input, because nothing before the layer learns. After a convolution comes
a mean over the image, which the loss needs and which costs next to nothing. Every other output
goes into the loss as it is, over its last axis."""

from __future__ import annotations

from steptime.graph import Net, Tensor, network

DEEPBENCH = "DeepBench (Baidu Research, 2016), "


@network(
    "gemm-1024",
    title="Product 1024 × 1024",
    source=DEEPBENCH + "dense matrix product",
    unit="samples",
)
def gemm_1024(net: Net) -> Tensor:
    return net.dense(net.input(1024), 1024, bias=False)


@network(
    "gemm-4096",
    title="Product 4096 × 4096",
    source=DEEPBENCH + "dense matrix product",
    unit="samples",
)
def gemm_4096(net: Net) -> Tensor:
    return net.dense(net.input(4096), 4096, bias=False)


@network(
    "conv-3x3-64",
    title="Convolution 3×3, 64 to 64 channels on 56×56",
    source="the second stage of ResNet-18 (He et al., 2015)",
    unit="samples",
)
def conv_3x3_64(net: Net) -> Tensor:
    return net.global_average_pool(net.conv(net.input(64, 56, 56), 64, 3, padding=1, bias=False))


@network(
    "conv-1x1-256",
    title="Convolution 1×1, 256 to 64 channels on 56×56",
    source="the second stage of ResNet-50 (He et al., 2015)",
    unit="samples",
)
def conv_1x1_256(net: Net) -> Tensor:
    return net.global_average_pool(net.conv(net.input(256, 56, 56), 64, 1, bias=False))


@network(
    "lstm-cell-1024",
    title="LSTM of 1024, 25 steps",
    source=DEEPBENCH + "recurrent layers",
    unit="samples",
)
def lstm_cell_1024(net: Net) -> Tensor:
    return net.lstm(net.input(25, 1024), 1024)


@network(
    "gru-cell-1024",
    title="GRU of 1024, 25 steps",
    source=DEEPBENCH + "recurrent layers",
    unit="samples",
)
def gru_cell_1024(net: Net) -> Tensor:
    return net.gru(net.input(25, 1024), 1024)


@network(
    "rnn-cell-1760",
    title="Plain recurrent layer of 1760 with relu, 50 steps",
    source=DEEPBENCH + "vanilla recurrent layers",
    unit="samples",
)
def rnn_cell_1760(net: Net) -> Tensor:
    return net.rnn(net.input(50, 1760), 1760, relu=True)
