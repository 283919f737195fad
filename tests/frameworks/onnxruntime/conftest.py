"""Small networks, and a way to lower them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Tensor, Work, sgd
from steptime.graph.weights import initial_weights


@pytest.fixture(scope="session", autouse=True)
def onnxruntime() -> Any:
    pytest.importorskip("onnx", reason="onnx is not installed")
    return pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


def images(net: Net) -> Tensor:
    return net.dense(net.flatten(net.max_pool(net.relu(net.conv(net.input(3, 8, 8), 4, 3)), 2)), 5)


def words(net: Net) -> Tensor:
    return net.dense(net.lstm(net.embedding(net.tokens(5, 11), 11, 4), 3), 11)


NETWORKS = {"images": images, "words": words}


@pytest.fixture
def work_of() -> Callable[[str], Work]:
    def build(name: str) -> Work:
        net = Net(name)
        graph = net.graph(NETWORKS[name](net))
        return Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 4, 0), sgd())

    return build


@pytest.fixture
def lower(work_of: Callable[[str], Work]) -> Callable[..., Any]:
    from steptime.frameworks import onnxruntime

    def build(name: str, **settings: Any) -> Any:
        own = {"framework": "onnxruntime", "phase": "inference", "mode": "graph", "batch_size": 4}
        return onnxruntime.lower(work_of(name), Case(workload=name, **own, **settings))

    return build
