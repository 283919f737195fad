"""The probes show what they are for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.graph import Graph, Net, adam
from steptime.tasks.certify.probes import dropout_probe, dropout_rates, rule_probe, without_dropout

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
