"""What a lowering is tried with: weights and batches that hide nothing, and small works."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from steptime.data.synthetic import synthetic_batch
from steptime.graph import Graph, Net, Optimizer, Work
from steptime.graph.batches import Batch
from steptime.graph.layer import Layer
from steptime.graph.weights import initial_weights

# Of the forward dropout probe: its loss then varies by a few percent from step to step.
WIDTH, ROWS = 64, 1024
# Of the rule probe's gradients: below and above the epsilons in use.
SIZES = np.logspace(-8, -2, 16)
# Keeps the shifts of the weights apart from the weights' own streams.
SHIFT_STREAM = 0x7368_6674
# Small and large samples reach both sides of every kink and clipping.
SAMPLE_SCALES = (1.0, 3.0, 0.3, 2.0)


def shifted_weights(graph: Graph, seed: int) -> dict[str, Any]:
    return shift_weights(graph, initial_weights(graph, seed), seed)


def shift_weights(graph: Graph, initial: dict[str, Any], seed: int) -> dict[str, Any]:
    """Initial weights, but no constant stays neutral.

    A scale of 1, a bias of 0, or statistics of 0 and 1 hide a lowering that ignores or swaps
    them. Constants other than 0 are multiplied by 0.5 to 1.5; zeros become normal with 0.2."""
    weights = dict(initial)
    for index, (name, weight) in enumerate(graph.weights.items()):
        if weight.initializer.distribution != "constant":
            continue
        rng = np.random.default_rng([seed, index, SHIFT_STREAM])
        if weight.initializer.scale:
            weights[name] = weights[name] * rng.uniform(0.5, 1.5, weight.shape)
        else:
            weights[name] = 0.2 * rng.standard_normal(weight.shape)
        weights[name] = weights[name].astype(np.float32)
    return weights


def probing_batch(graph: Graph, size: int, seed: int) -> Batch:
    """A synthetic batch that reaches every branch.

    Images are of several scales. Tokens repeat, and the first and the last are among them: a
    gradient must add up over equal tokens, and token 0 is padding in some libraries."""
    batch = synthetic_batch(graph, size, seed)
    values = batch["input"]
    if graph.input.vocabulary:
        length = values.shape[1]
        values[:, 0:length:4] = 0
        values[:, 1:length:4] = graph.input.vocabulary - 1
    else:
        scales = np.resize(SAMPLE_SCALES, size).astype(np.float32)
        values = values * scales.reshape(-1, *[1] * (values.ndim - 1))
    target = batch["target"]
    target.flat[0] = 0
    target.flat[-1] = graph[graph.output].shape[-1] - 1
    return {"input": values, "target": target}


def first_sample(work: Work) -> Work:
    return replace(work, batch={name: array[:1] for name, array in work.batch.items()})


def without_dropout(graph: Graph) -> Graph:
    """The graph with rate 0, so that the timed step itself can be compared.

    Frameworks draw different random numbers and could not agree."""
    return replace(graph, layers=tuple(_without_rate(layer) for layer in graph))


def _without_rate(layer: Layer) -> Layer:
    if not _drops(layer):
        return layer
    return replace(layer, op=replace(layer.op, rate=0.0))  # type: ignore[call-arg]


def dropout_layers(graph: Graph) -> list[Layer]:
    return [layer for layer in graph if _drops(layer)]


def dropout_rates(graph: Graph) -> list[float]:
    return sorted({dropout_rate(layer) for layer in dropout_layers(graph)})


def dropout_rate(layer: Layer) -> float:
    return float(layer.op.settings()["rate"])


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


def rule_probe(rule: Optimizer, factor: float = 1.0) -> Work:
    """Gradients of many sizes, so that every mistake moves some weight visibly.

    Such mistakes are a misplaced epsilon, coupled weight decay, a missing bias correction,
    another momentum. The weights are small, because their own rounding hides an update."""
    net = Net("rule_probe")
    graph = net.graph(net.dense(net.input(len(SIZES)), 4))
    rng = np.random.default_rng(1)
    inputs = factor * SIZES * rng.uniform(0.5, 1.0, (4, len(SIZES)))
    batch = {"input": inputs.astype(np.float32), "target": np.array([0, 1, 2, 0])}
    weights = {
        "dense1.weight": (1e-3 * rng.standard_normal((4, len(SIZES)))).astype(np.float32),
        "dense1.bias": np.array([0.1, -0.1, 0.2, 0.05], np.float32),
    }
    return Work(graph, weights, batch, rule)


def _drops(layer: Layer) -> bool:
    return layer.op.name == "dropout"


def statistics_names(graph: Graph) -> Iterable[str]:
    """Weights that no gradient moves: moving statistics, and fixed positions."""
    return [name for name, weight in graph.weights.items() if not weight.trainable]
