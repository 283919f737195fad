"""Perceptrons."""

from __future__ import annotations

from steptime.graph import Net, Tensor, adam, network


@network(
    "mnist-mlp",
    title="MNIST perceptron (simple-mnist-tf2)",
    source="dl-mini-workloads simple-mnist-tf2: flatten, 128, dropout 0.2, 10",
    optimizer=adam(1e-3, epsilon=1e-7),
    data="mnist",
)
def mnist_mlp(net: Net) -> Tensor:
    x = net.relu(net.dense(net.flatten(net.input(1, 28, 28)), 128))
    return net.dense(net.dropout(x, 0.2), 10)
