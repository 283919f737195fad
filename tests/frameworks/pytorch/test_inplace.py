"""Which layers compute in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime import networks
from steptime.frameworks.pytorch.inplace import inplace_inputs
from steptime.graph import Net


def test_inplace_inputs_include_relu_and_add(graph_of: Any) -> None:
    inputs = inplace_inputs(graph_of("residual"))
    assert inputs["relu1"] == 0  # of a normalisation
    assert inputs["add1"] == 0  # a normalisation, not the relu that tanh reads too
    assert inputs["relu3"] == 0  # of a pool


def test_inplace_inputs_exclude_what_a_backward_pass_reads() -> None:
    net = Net("tanh")
    assert inplace_inputs(net.graph(net.relu(net.tanh(net.input(3))))) == {}


def test_inplace_inputs_exclude_what_another_layer_reads() -> None:
    net = Net("twice")
    x = net.dense(net.input(3), 3)
    assert inplace_inputs(net.graph(net.add(net.tanh(net.relu(x)), x))) == {}


def test_inplace_inputs_exclude_the_batch() -> None:
    net = Net("input")
    assert inplace_inputs(net.graph(net.relu(net.flatten(net.input(1, 2, 2))))) == {}


def test_inplace_inputs_exclude_a_sum_of_two_precisions() -> None:
    net = Net("mixed")
    x = net.batch_norm(net.input(3, 4, 4))
    assert inplace_inputs(net.graph(net.add(net.conv(x, 3, 1), net.batch_norm(x)))) == {}


def test_inplace_inputs_exclude_ops_of_either_precision() -> None:
    net = Net("either")
    x = net.dense(net.input(3), 3)
    assert inplace_inputs(net.graph(net.add(net.dense(x, 3), net.layer_norm(x)))) == {}


def test_inplace_inputs_exclude_views() -> None:
    net = Net("view")
    x = net.dense(net.input(3), 6)
    assert inplace_inputs(net.graph(net.relu(net.slice(x, 0, 3)))) == {}


@pytest.mark.parametrize("name", ["residual", "perceptron", "branches", "transformer", "cells"])
def test_gradients_in_place_equal_those_without(name: str, work_of: Any, torch: Any) -> None:
    from steptime.frameworks.pytorch.lowering import lower_graph

    work = work_of(name)
    gradients = []
    for overwrite in (True, False):
        module = lower_graph(work.graph, overwrite=overwrite)
        module.dropping = False
        for key, value in module.canonical().items():
            value.data.copy_(torch.from_numpy(work.weights[key]))
        loss = module(torch.from_numpy(work.batch["input"])).square().sum()
        tensors = torch.autograd.grad(loss, list(module.parameters()))
        gradients.append([tensor.numpy() for tensor in tensors])
    for in_place, plain in zip(*gradients, strict=True):
        np.testing.assert_array_equal(in_place, plain)


def test_inplace_inputs_cover_every_add_and_relu_of_resnet50() -> None:
    graph = networks.load("resnet50").graph
    assert set(inplace_inputs(graph)) == {
        layer.name for layer in graph if layer.op.name in ("relu", "add")
    }
