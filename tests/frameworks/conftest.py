"""For frameworks that read the graph's ONNX model: small networks, and a way to lower them. Others have their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steptime import shelf
from steptime.core.case import Case
from steptime.core.errors import NotInstalled
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Tensor, Work, sgd
from steptime.graph.weights import initial_weights


def images(net: Net) -> Tensor:
    return net.dense(net.flatten(net.max_pool(net.relu(net.conv(net.input(3, 8, 8), 4, 3)), 2)), 5)


def words(net: Net) -> Tensor:
    return net.dense(net.lstm(net.embedding(net.tokens(5, 11), 11, 4), 3), 11)


def perceptron(net: Net) -> Tensor:
    x = net.dense(net.input(5, 8), 8)
    return net.layer_norm(net.gelu(net.gelu(net.attention(x, x, x, heads=2, causal=True)), tanh=True))


NETWORKS = {"images": images, "words": words, "perceptron": perceptron}


@pytest.fixture
def work_of() -> Callable[[str], Work]:
    def build(name: str) -> Work:
        net = Net(name)
        graph = net.graph(NETWORKS[name](net))
        return Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 4, 0), sgd())

    return build


@pytest.fixture
def lower(reader: str, work_of: Callable[[str], Work]) -> Callable[..., Any]:
    """`reader`: the framework's name, from the folder or the file that asks."""

    def build(name: str, **settings: Any) -> Any:
        own = {"framework": reader, "phase": "inference", "mode": "graph", "batch_size": 4}
        try:
            return shelf.load("frameworks", reader).lower(work_of(name), Case(workload=name, **own, **settings))
        except NotInstalled as problem:
            pytest.skip(str(problem))

    return build
