from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime import networks
from steptime.frameworks.pytorch.inplace import overwrites
from steptime.graph import Net


def test_relu_and_add_overwrite_what_nobody_needs(graph_of: Any) -> None:
    found = overwrites(graph_of("residual"))
    assert found["relu1"] == 0  # of a normalisation
    assert found["add1"] == 0  # a normalisation, not the relu that tanh reads too
    assert found["relu3"] == 0  # of a pool


def test_what_a_backward_pass_reads_is_left_alone() -> None:
    net = Net("tanh")
    assert overwrites(net.graph(net.relu(net.tanh(net.input(3))))) == {}


def test_what_another_layer_reads_is_left_alone() -> None:
    net = Net("twice")
    x = net.dense(net.input(3), 3)
    assert overwrites(net.graph(net.add(net.tanh(net.relu(x)), x))) == {}


def test_the_batch_itself_is_left_alone() -> None:
    net = Net("input")
    assert overwrites(net.graph(net.relu(net.flatten(net.input(1, 2, 2))))) == {}


def test_a_sum_of_two_precisions_is_left_alone() -> None:
    net = Net("mixed")
    x = net.batch_norm(net.input(3, 4, 4))
    assert overwrites(net.graph(net.add(net.conv(x, 3, 1), net.batch_norm(x)))) == {}


def test_what_a_device_may_raise_to_full_precision_is_left_alone() -> None:
    net = Net("either")
    x = net.dense(net.input(3), 3)
    assert overwrites(net.graph(net.add(net.dense(x, 3), net.layer_norm(x)))) == {}


def test_a_slice_is_a_view_and_left_alone() -> None:
    net = Net("view")
    x = net.dense(net.input(3), 6)
    assert overwrites(net.graph(net.relu(net.slice(x, 0, 3)))) == {}


@pytest.mark.parametrize("name", ["residual", "perceptron", "branches", "transformer", "cells"])
def test_gradients_are_those_of_the_careful_variant(name: str, work_of: Any, torch: Any) -> None:
    from steptime.frameworks.pytorch.lowering import lower_graph

    work, found = work_of(name), []
    for overwrite in (True, False):
        module = lower_graph(work.graph, overwrite=overwrite)
        module.dropping = False
        for key, value in module.canonical().items():
            value.data.copy_(torch.from_numpy(work.weights[key]))
        loss = module(torch.from_numpy(work.batch["input"])).square().sum()
        found.append([g.numpy() for g in torch.autograd.grad(loss, list(module.parameters()))])
    for quick, careful in zip(*found, strict=True):
        np.testing.assert_array_equal(quick, careful)


def test_every_sum_and_relu_of_resnet50_is_in_place() -> None:
    graph = networks.load("resnet50").graph
    assert set(overwrites(graph)) == {
        layer.name for layer in graph if layer.op.name in ("relu", "add")
    }
