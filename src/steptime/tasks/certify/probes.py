"""Small works that show what the network hides: the scale of dropout, details of the optimizer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steptime.graph import Graph, Net, Optimizer, Work
from steptime.graph.layer import Layer

# Of the dropout probe: its loss then varies by a few percent from step to step.
WIDTH, ROWS = 64, 1024
# Of the rule probe's gradients: below and above the epsilons in use.
SIZES = np.logspace(-8, -2, 16)


def without_dropout(graph: Graph) -> Graph:
    """The graph with rate 0, so that the timed step itself can be compared.

    Frameworks draw different random numbers and could not agree."""
    return replace(graph, layers=tuple(_without_rate(layer) for layer in graph))


def _without_rate(layer: Layer) -> Layer:
    if not _drops(layer):
        return layer
    return replace(layer, op=replace(layer.op, rate=0.0))  # type: ignore[call-arg]


def dropout_rates(graph: Graph) -> list[float]:
    return sorted({layer.op.settings()["rate"] for layer in graph if _drops(layer)})


def dropout_probe(rate: float) -> Work:
    """Dropout, then the identity: its loss shows how many values were kept, and their scale."""
    net = Net("dropout_probe")
    graph = net.graph(net.dense(net.dropout(net.input(WIDTH), rate), WIDTH))
    rng = np.random.default_rng(0)
    batch = {
        "input": rng.standard_normal((ROWS, WIDTH)).astype(np.float32),
        "target": rng.integers(0, WIDTH, ROWS),
    }
    weights = {
        "dense1.weight": np.eye(WIDTH, dtype=np.float32),
        "dense1.bias": np.zeros(WIDTH, np.float32),
    }
    return Work(graph, weights, batch, Optimizer("sgd", 0.0))


def rule_probe(rule: Optimizer) -> Work:
    """Gradients of many sizes, so that every mistake moves some weight visibly.

    Such mistakes are a misplaced epsilon, coupled weight decay, a missing bias correction,
    another momentum. The weights are small, because their own rounding hides an update."""
    net = Net("rule_probe")
    graph = net.graph(net.dense(net.input(len(SIZES)), 4))
    rng = np.random.default_rng(1)
    inputs = SIZES * rng.uniform(0.5, 1.0, (4, len(SIZES)))
    batch = {"input": inputs.astype(np.float32), "target": np.array([0, 1, 2, 0])}
    weights = {
        "dense1.weight": (1e-3 * rng.standard_normal((4, len(SIZES)))).astype(np.float32),
        "dense1.bias": np.array([0.1, -0.1, 0.2, 0.05], np.float32),
    }
    return Work(graph, weights, batch, rule)


def _drops(layer: Layer) -> bool:
    return layer.op.name == "dropout"
