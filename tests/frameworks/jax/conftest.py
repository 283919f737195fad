"""Small networks that use what is difficult, and a way to lower them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Graph, Net, Optimizer, Tensor, Work, sgd
from steptime.graph.weights import initial_weights


@pytest.fixture(scope="session", autouse=True)
def jax() -> Any:
    found = pytest.importorskip("jax", reason="JAX is not installed")
    if find_spec("jax_cuda12_plugin") or find_spec("jax_cuda13_plugin"):
        found.config.update("jax_platforms", "cuda,cpu")  # a worker has one device; these tests have both
    return found


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
    x = net.concat(net.pad_channels(x, 1, 2), net.gelu(x), net.slice(net.layer_norm(net.concat(x, x, axis=-1)), 1, 4))
    return net.dense(net.flatten(net.concat(x, net.scale(x, 0.5), axis=1)), 4)


def sequence(net: Net) -> Tensor:
    return net.dense(net.lstm(net.embedding(net.tokens(5, 11), 11, 4), 3), 11)


def perceptron(net: Net) -> Tensor:
    return net.dense(net.dropout(net.relu(net.dense(net.input(6), 8)), 0.5), 4)


NETWORKS = {
    "residual": residual, "pooled": pooled, "joined": joined, "sequence": sequence, "perceptron": perceptron,
}  # fmt: skip


@pytest.fixture
def graph_of() -> Callable[[str], Graph]:
    def build(name: str) -> Graph:
        net = Net(name)
        return net.graph(NETWORKS[name](net))

    return build


@pytest.fixture
def work_of(graph_of: Callable[[str], Graph]) -> Callable[..., Work]:
    def build(name: str, optimizer: Optimizer | None = None) -> Work:
        graph = graph_of(name)
        return Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 4, 0), optimizer or sgd(0.1))

    return build


@pytest.fixture
def lower(work_of: Callable[..., Work]) -> Callable[..., Any]:
    from steptime.frameworks import jax

    def build(name: str, optimizer: Optimizer | None = None, **settings: Any) -> Any:
        case = Case(workload=name, framework="jax", batch_size=4, **{"mode": "compiled", **settings})
        return jax.lower(work_of(name, optimizer), case)

    return build
