"""The probes show what they are for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.graph import Graph, Net, adam
from steptime.graph.weights import initial_weights
from steptime.tasks.certify.probes import (
    dropout_probe,
    dropout_rates,
    probing_batch,
    rule_probe,
    shifted_weights,
    without_dropout,
)

CASE = Case(workload="probe", framework="numpy", precision="fp64", phase="forward")


def dropping() -> Graph:
    net = Net("net")
    return net.graph(net.dropout(net.dense(net.dropout(net.input(3), 0.5), 4), 0.2))


def test_without_dropout_changes_nothing_else() -> None:
    graph = without_dropout(dropping())
    assert dropout_rates(graph) == [0.0] and dropout_rates(dropping()) == [0.2, 0.5]
    assert graph.weights == dropping().weights and graph.output == dropping().output


def test_dropout_probe_separates_rates() -> None:
    losses = []
    for rate in (0.2, 0.25):
        program = reference.lower(dropout_probe(rate), CASE)
        losses.append([program.step() for _ in range(32)])
    noise = np.std(losses[0]) / np.sqrt(16)
    assert abs(np.mean(losses[0]) - np.mean(losses[1])) > 5 * noise


def test_rule_probe_has_gradients_around_every_epsilon() -> None:
    probe = rule_probe(adam())
    _, gradients = reference.lower(probe, replace(CASE, phase="training")).gradients(probe.batch)
    sizes = np.abs(gradients["dense1.weight"])
    assert sizes.min() < 1e-8 and sizes.max() > 1e-4


def neutral() -> Graph:
    net = Net("net")
    x = net.batch_norm(net.conv(net.input(2, 6, 6), 4, 3, bias=False))
    return net.graph(net.dense(net.layer_norm(net.flatten(x)), 5))


def test_shifted_weights_leave_nothing_neutral() -> None:
    weights = shifted_weights(neutral(), 0)
    for name in ("batch_norm1.weight", "batch_norm1.running_variance", "layer_norm1.weight"):
        assert (np.abs(weights[name] - 1) > 1e-4).all() and (weights[name] > 0.4).all()
    for name in ("batch_norm1.bias", "batch_norm1.running_mean", "layer_norm1.bias"):
        assert (weights[name] != 0).all() and np.abs(weights[name]).max() < 1.5


def test_shifted_weights_keep_what_is_drawn_anyway() -> None:
    graph = neutral()
    initial = initial_weights(graph, 0)["conv1.weight"]
    np.testing.assert_array_equal(shifted_weights(graph, 0)["conv1.weight"], initial)


def test_probing_batch_repeats_the_first_and_the_last_token() -> None:
    net = Net("net")
    graph = net.graph(net.dense(net.embedding(net.tokens(12, 100), 100, 4), 100))
    tokens = probing_batch(graph, 2, 0)["input"]
    assert (tokens == 0).sum() >= 6 and (tokens == 99).sum() >= 6


def test_probing_batch_has_small_and_large_samples() -> None:
    sizes = np.abs(probing_batch(neutral(), 4, 0)["input"]).max(axis=(1, 2, 3))
    assert sizes.max() > 5 * sizes.min()


def test_probing_batch_has_the_first_and_the_last_class() -> None:
    targets = probing_batch(neutral(), 4, 0)["target"]
    assert targets.min() == 0 and targets.max() == 4
