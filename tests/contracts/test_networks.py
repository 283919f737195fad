"""What every network on the shelf must be."""

from __future__ import annotations

import json

import pytest

from steptime import networks
from steptime.graph import Graph, Network

PARAMETERS = {
    "alexnet-owt": 61_100_840,
    "cifar10-cnn": 122_570,
    "deepmnist": 3_274_634,
    "lenet5": 61_706,
    "mnist-mlp": 101_770,
    "ptb-lstm-small": 4_651_600,
    "resnet50": 25_557_032,
}
"""As published."""

MULTIPLY_ADDS = {"alexnet-owt": 714_188_480, "cifar10-cnn": 4_548_608, "deepmnist": 13_883_904}
"""Of one image, forward, as published."""


@pytest.fixture(params=networks.catalogue())
def network(request: pytest.FixtureRequest) -> Network:
    return networks.load(request.param)


def test_a_network_says_what_it_is_and_where_it_comes_from(network: Network) -> None:
    assert network.title and network.source
    assert network.unit in ("images", "tokens") and network.units_per_sample > 0


def test_a_network_builds_and_costs_something(network: Network) -> None:
    graph = network.graph
    assert 0 < graph.trainable_parameters <= graph.stored_parameters
    assert 0 < graph.forward_flops < graph.backward_flops
    assert graph.forward_bytes(batch=2) > graph.forward_bytes() > 0


def test_a_network_survives_json(network: Network) -> None:
    assert Graph.from_dict(json.loads(json.dumps(network.graph.to_dict()))) == network.graph


def test_no_two_networks_are_the_same() -> None:
    prints = [network.graph.fingerprint for network in networks.catalogue().values()]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_as_published(name: str) -> None:
    assert networks.load(name).graph.trainable_parameters == PARAMETERS[name]


@pytest.mark.parametrize("name", MULTIPLY_ADDS)
def test_multiply_adds_are_as_published(name: str) -> None:
    assert networks.load(name).graph.forward_flops == 2 * MULTIPLY_ADDS[name]
