"""Small networks with ops and settings that no network of the catalogue has."""

from __future__ import annotations

from pathlib import Path

from steptime.graph import Net, Tensor, adam, adamw, momentum, network

FILE = Path(__file__)


def own_network(name: str) -> str:
    """The workload of a network in this file."""
    return f"{FILE}:{name}"


@network("strided", title="Stride 2 with padding on one side", source="", optimizer=momentum(0.05))
def strided(net: Net) -> Tensor:
    x = net.relu(net.conv(net.input(3, 16, 16), 8, 3, stride=2, padding="same"))
    x = net.max_pool(x, 3, stride=2, padding="same")
    return net.dense(net.flatten(net.tanh(net.conv(x, 8, 3, padding=1))), 10)


@network("grouped", title="Groups and dilation", source="", optimizer=momentum(0.05))
def grouped(net: Net) -> Tensor:
    x = net.relu(net.conv(net.input(4, 13, 13), 8, 3, groups=2))
    x = net.relu(net.conv(x, 8, 3, dilation=2, padding=2))
    x = net.max_pool(x, 2, ceil=True)
    return net.dense(net.flatten(x), 10)


@network("bell", title="gelu", source="", optimizer=adam(1e-3), unit="samples")
def bell(net: Net) -> Tensor:
    x = net.gelu(net.dense(net.input(24), 32))
    return net.dense(net.sigmoid(net.layer_norm(net.dense(x, 16))), 10)


@network("gated", title="GRU", source="", optimizer=adam(1e-3), unit="tokens")
def gated(net: Net) -> Tensor:
    x = net.embedding(net.tokens(8, 40), 40, 12)
    return net.dense(net.gru(net.dropout(x, 0.25), 16), 40)


@network("normal", title="Batch norm", source="", optimizer=momentum(0.05, weight_decay=1e-4))
def normal(net: Net) -> Tensor:
    x = net.batch_norm(net.conv(net.input(3, 12, 12), 8, 3, bias=False))
    y = net.batch_norm(net.conv(net.relu(x), 8, 3, padding=1, bias=False))
    return net.dense(net.global_average_pool(net.relu(net.add(x, y))), 10)


@network("decoder", title="A decoder as in GPT-2", source="", optimizer=adamw(1e-3), unit="tokens")
def decoder(net: Net) -> Tensor:
    table = net.embedding(net.tokens(12, 40), 40, 24)
    x = net.positions(table)
    projected = net.dense(net.layer_norm(x), 72)
    query, keys, values = (net.slice(projected, start, start + 24) for start in (0, 24, 48))
    x = net.add(x, net.dense(net.attention(query, keys, values, heads=3, causal=True), 24))
    y = net.dense(net.gelu(net.dense(net.layer_norm(x), 48), tanh=True), 24)
    return net.tied_dense(net.layer_norm(net.add(x, y)), table)


@network("neighbours", title="LRN and branches", source="", optimizer=momentum(0.05))
def neighbours(net: Net) -> Tensor:
    x = net.lrn(net.relu(net.conv(net.input(3, 12, 12), 8, 3)), alpha=1e-4, k=1.0)
    x = net.concat(net.conv(x, 8, 1), net.conv(x, 4, 3, padding=1))
    return net.dense(net.global_average_pool(net.relu(x)), 10)


@network("memory", title="LSTM", source="", optimizer=adam(1e-3), unit="tokens")
def memory(net: Net) -> Tensor:
    return net.dense(net.lstm(net.embedding(net.tokens(6, 30), 30, 12), 12), 30)
