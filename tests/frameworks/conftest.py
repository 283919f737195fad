"""Small networks with the difficult features, and a fixture that lowers them.

Each folder has a fixture `defaults` with the settings of its cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steptime import plugins
from steptime.core.case import Case
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Graph, Net, Optimizer, Tensor, Work, sgd
from steptime.graph.weights import initial_weights

Write = Callable[[Net], Tensor]


def residual(net: Net) -> Tensor:
    """Uneven padding, groups, dilation, pools that round up, a sum of two ways, dense layers."""
    x = net.conv(net.input(2, 9, 8), 4, 3, stride=2, padding="same")
    y = net.relu(net.batch_norm(net.conv(x, 4, 3, padding=2, dilation=2, groups=2, bias=False)))
    x = net.max_pool(net.add(net.sigmoid(x), y), 3, stride=2, padding=1, ceil=True)
    x = net.average_pool(x, 2, stride=1, padding=1, ceil=True)
    return net.dense(net.relu(net.dense(net.flatten(x), 6)), 5)


def pooled(net: Net) -> Tensor:
    """A dense layer over the width of an image, whatever the layout."""
    x = net.dense(net.conv(net.input(2, 6, 5), 3, 3), 4)
    return net.dense(net.batch_norm(net.global_average_pool(x)), 4)


def joined(net: Net) -> Tensor:
    """What counts channels or axes: they lie elsewhere when channels are last."""
    x = net.lrn(net.conv(net.input(2, 6, 5), 3, 3), 3, alpha=2.0)
    x = net.concat(
        net.pad_channels(x, 1, 2),
        net.gelu(x),
        net.slice(net.layer_norm(net.concat(x, x, axis=-1)), 1, 4),
    )
    return net.dense(net.flatten(net.concat(x, net.scale(x, 0.5), axis=1)), 4)


def images(net: Net) -> Tensor:
    """What int8 knows: nothing else."""
    return net.dense(net.flatten(net.max_pool(net.relu(net.conv(net.input(3, 8, 8), 4, 3)), 2)), 5)


def sequence(net: Net) -> Tensor:
    return net.dense(net.lstm(net.embedding(net.tokens(5, 11), 11, 4), 3), 11)


def attentive(net: Net) -> Tensor:
    x = net.dense(net.input(5, 8), 8)
    return net.layer_norm(
        net.gelu(net.gelu(net.attention(x, x, x, heads=2, causal=True)), tanh=True)
    )


def perceptron(net: Net) -> Tensor:
    return net.dense(net.dropout(net.relu(net.dense(net.input(6), 8)), 0.5), 4)


@pytest.fixture
def networks() -> dict[str, Write]:
    """A folder may add networks."""
    return {
        write.__name__: write
        for write in (residual, pooled, joined, images, sequence, attentive, perceptron)
    }


@pytest.fixture
def graph_of(networks: dict[str, Write]) -> Callable[[str], Graph]:
    def build(name: str) -> Graph:
        net = Net(name)
        return net.graph(networks[name](net))

    return build


@pytest.fixture
def work_of(graph_of: Callable[[str], Graph]) -> Callable[..., Work]:
    def build(name: str, optimizer: Optimizer | None = None) -> Work:
        graph = graph_of(name)
        return Work(
            graph,
            dict(initial_weights(graph, 0)),
            synthetic_batch(graph, 4, 0),
            optimizer or sgd(0.1),
        )

    return build


@pytest.fixture
def lower(defaults: dict[str, str], work_of: Callable[..., Work]) -> Callable[..., Any]:
    """`defaults`: the settings of the folder or file that asks, with the framework's name."""

    def build(name: str, optimizer: Optimizer | None = None, **settings: Any) -> Any:
        case = Case(workload=name, batch_size=4, **{**defaults, **settings})
        return plugins.load("frameworks", case.framework).lower(work_of(name, optimizer), case)

    return build
