"""Reduced copies: every kind of layer stays, in the same company; the rest becomes small."""

from __future__ import annotations

from typing import Any

import pytest

from steptime import networks
from steptime.graph import Graph, Net, Tensor
from steptime.graph.reduced import _signatures, narrow, reduced, remove_repeats


def graph_of(build: Any) -> Graph:
    net = Net("net")
    return net.graph(build(net))


def residual(net: Net, blocks: int = 4) -> Tensor:
    x = net.relu(net.conv(net.input(3, 8, 8), 16, 3, padding=1))
    for _ in range(blocks):
        y = net.batch_norm(net.conv(x, 16, 3, padding=1, bias=False))
        x = net.relu(net.add(y, x))
    return net.dense(net.flatten(x), 10)


@pytest.mark.parametrize("name", networks.catalogue())
def test_reduced_keeps_every_kind_of_layer_of_a_network(name: str) -> None:
    graph = networks.load(name).graph
    copy = reduced(graph)
    assert set(_signatures(copy.layers)) == set(_signatures(graph.layers))
    assert copy.input.shape == graph.input.shape
    assert copy.forward_flops <= graph.forward_flops


@pytest.mark.parametrize("name", ["resnet50", "resnet56-cifar", "transformer-base", "gpt2"])
def test_reduced_is_shallow_if_a_network_repeats_blocks(name: str) -> None:
    graph = networks.load(name).graph
    assert len(reduced(graph).layers) < 0.4 * len(graph.layers)


def test_remove_repeats_leaves_one_block_and_the_ends() -> None:
    few, many = (remove_repeats(graph_of(lambda net, n=n: residual(net, n))) for n in (3, 9))
    assert len(few.layers) == len(many.layers) < len(graph_of(residual).layers)


def test_remove_repeats_makes_no_new_neighbours() -> None:
    """A lone batch norm has its input's shape, but without it a relu would follow a conv."""
    graph = graph_of(residual)
    assert sum(layer.op.name == "batch_norm" for layer in remove_repeats(graph)) >= 1
    assert set(_signatures(remove_repeats(graph).layers)) == set(_signatures(graph.layers))


def test_narrow_divides_widths_and_keeps_windows() -> None:
    graph = graph_of(residual)
    half = narrow(graph, 2)
    assert half["conv1"].shape == (8, 8, 8) and graph["conv1"].shape == (16, 8, 8)
    assert half["conv1"].op.settings()["kernel"] == (3, 3)
    assert half[half.output].shape == (5,)


def test_reduced_chooses_a_factor_that_divides_all_widths() -> None:
    copy = reduced(graph_of(lambda net: net.dense(net.relu(net.dense(net.input(9), 45)), 30)))
    assert copy["dense1"].shape == (9,) and copy[copy.output].shape == (6,)


def test_reduced_cuts_features_but_not_time() -> None:
    def build(net: Net) -> Tensor:
        tokens = net.slice(net.tokens(8, 64), 0, 6)
        x = net.embedding(tokens, 64, 32)
        return net.dense(net.add(net.slice(x, 0, 16), net.slice(x, 16, 32)), 64)

    copy = reduced(graph_of(build))
    assert copy["slice1"].shape == (6,) and copy["slice2"].shape == (6, 2)


def test_reduced_keeps_depthwise_convolutions_depthwise() -> None:
    def build(net: Net) -> Tensor:
        x = net.conv(net.input(3, 8, 8), 32, 1)
        return net.dense(net.flatten(net.conv(x, 32, 3, groups=32)), 8)

    conv: Any = reduced(graph_of(build))["conv2"]
    assert conv.op.groups == conv.input_shapes[0][0] == 4


def test_reduced_leaves_a_small_network_as_it_is() -> None:
    graph = graph_of(lambda net: net.dense(net.relu(net.dense(net.input(4), 7)), 3))
    assert reduced(graph)["dense1"].shape == (7,)
