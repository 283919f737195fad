"""Networks with layers that may compute in place, and layers that may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steptime.graph import Net, Tensor


@pytest.fixture(scope="session", autouse=True)
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def residual(net: Net) -> Tensor:
    """Convolutions, normalisation, a sum, relu: some may compute in place, some may not."""
    x = net.relu(net.batch_norm(net.conv(net.input(3, 8, 8), 4, 3, padding=1, bias=False)))
    y = net.batch_norm(net.conv(net.tanh(x), 4, 3, padding=1))
    x = net.relu(net.add(y, x))
    x = net.relu(net.max_pool(net.add(x, net.sigmoid(x)), 2))
    return net.dense(net.relu(net.dense(net.flatten(x), 6)), 5)


def branches(net: Net) -> Tensor:
    x = net.lrn(net.conv(net.input(3, 8, 8), 6, 3), 3, alpha=2.0)
    x = net.concat(
        net.relu(net.conv(x, 4, 1)), net.pad_channels(net.average_pool(x, 1), 2, 1), net.relu(x)
    )
    return net.dense(net.slice(net.flatten(x), 5, 600), 5)


def transformer(net: Net) -> Tensor:
    table = net.embedding(net.tokens(6, 11), 11, 8)
    x = net.layer_norm(net.positions(table))
    x = net.add(x, net.attention(*slices(net, net.dense(x, 24)), heads=2, causal=True))
    x = net.add(net.gelu(net.dense(x, 8), tanh=True), net.scale(x, 0.5))
    return net.tied_dense(x, table)


def slices(net: Net, x: Tensor) -> list[Tensor]:
    return [net.slice(x, at, at + 8) for at in (0, 8, 16)]


def cells(net: Net) -> Tensor:
    x = net.gru(net.embedding(net.tokens(5, 11), 11, 4), 3)
    return net.dense(net.rnn(net.rnn(x, 4), 4, relu=True), 11)


@pytest.fixture
def networks(networks: dict[str, Callable[[Net], Tensor]]) -> dict[str, Callable[[Net], Tensor]]:
    return networks | {write.__name__: write for write in (residual, branches, transformer, cells)}


@pytest.fixture
def defaults() -> dict[str, str]:
    return {"framework": "pytorch"}
