"""Small works that show what the network itself hides: how dropout scales, and the fine print of the optimiser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steptime.graph import Graph, Net, Optimizer, Work
from steptime.graph.layer import Layer

WIDTH, ROWS = (
    64,
    1024,
)  # of the dropout probe: its loss then varies by a few percent from step to step
SIZES = np.logspace(-8, -2, 16)  # gradients of the rule probe: below and above the epsilons in use


def without_dropout(graph: Graph) -> Graph:
    """Frameworks draw differently and could not agree; with a rate of 0 the timed step itself can be compared."""
    return replace(graph, layers=tuple(_without_rate(layer) for layer in graph))


def _without_rate(layer: Layer) -> Layer:
    if not _drops(layer):
        return layer
    return replace(layer, op=replace(layer.op, rate=0.0))  # type: ignore[call-arg]


def dropout_rates(graph: Graph) -> list[float]:
    return sorted({layer.op.settings()["rate"] for layer in graph if _drops(layer)})


def dropout_probe(rate: float) -> Work:
    """Dropout, then the identity: the loss of such outputs tells how many were kept and how they were scaled."""
    net = Net("dropout_probe")
    graph = net.graph(net.dense(net.dropout(net.input(WIDTH), rate), WIDTH))
    random = np.random.default_rng(0)
    batch = {
        "input": random.standard_normal((ROWS, WIDTH)).astype(np.float32),
        "target": random.integers(0, WIDTH, ROWS),
    }
    weights = {
        "dense1.weight": np.eye(WIDTH, dtype=np.float32),
        "dense1.bias": np.zeros(WIDTH, np.float32),
    }
    return Work(graph, weights, batch, Optimizer("sgd", 0.0))


def rule_probe(rule: Optimizer) -> Work:
    """Gradients of many sizes, so that an epsilon in another place, a decay coupled otherwise, a missing correction or
    another momentum moves some weight visibly. Weights are small, because their own rounding hides an update."""
    net = Net("rule_probe")
    graph = net.graph(net.dense(net.input(len(SIZES)), 4))
    random = np.random.default_rng(1)
    values = SIZES * random.uniform(0.5, 1.0, (4, len(SIZES)))
    batch = {"input": values.astype(np.float32), "target": np.array([0, 1, 2, 0])}
    weights = {
        "dense1.weight": (1e-3 * random.standard_normal((4, len(SIZES)))).astype(np.float32),
        "dense1.bias": np.array([0.1, -0.1, 0.2, 0.05], np.float32),
    }
    return Work(graph, weights, batch, rule)


def _drops(layer: Layer) -> bool:
    return layer.op.name == "dropout"
