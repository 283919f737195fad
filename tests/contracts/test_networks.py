"""What every network of the catalogue must be."""

from __future__ import annotations

import json

import pytest

from steptime import networks
from steptime.graph import Graph, Network

PARAMETERS = {
    "alexnet-owt": 61_100_840,
    "alexnet-tfcnn": 61_838_248,
    "cifar10-cnn": 122_570,
    "conv-1x1-256": 256 * 64,
    "conv-3x3-64": 64 * 64 * 3 * 3,
    "deepmnist": 3_274_634,
    "gemm-1024": 1024**2,
    "gemm-4096": 4096**2,
    "googlenet": 6_998_552,
    "gpt2": 124_439_808,
    "gru-cell-1024": 3 * 1024 * 2 * 1024 + 4 * 1024,
    "inception-v3": 23_834_568,
    "lenet5": 61_706,
    "lstm-cell-1024": 4 * (1024 * 2 * 1024 + 1024),
    "mnist-mlp": 101_770,
    "ptb-lstm-large": 66_022_000,
    "ptb-lstm-medium": 19_775_200,
    "ptb-lstm-small": 4_651_600,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnet56-cifar": 853_018,  # with projections in the shortcuts it would be 855,770
    "rnn-cell-1760": 1760 * 2 * 1760 + 1760,
    "seq2seq-attention": 2 * 32_000 * 512 + 4 * (4 * 512 * 1025) + 1024 * 512 + 512 * 32_000,
    "transformer-base": 37_000 * 512 + 6 * (12 * 512**2 + 4 * 2048 * 512 + 2 * 2560 + 5 * 1024),
    "vgg16": 138_357_544,
}
"""As published, or by hand."""

MULTIPLY_ADDS = {
    "alexnet-owt": 714_188_480,
    "alexnet-tfcnn": 838_788_800,
    "cifar10-cnn": 4_548_608,
    "deepmnist": 13_883_904,
    "googlenet": 1_582_671_872,
    "gpt2": 1024 * (12 * 12 * 768**2 + 768 * 50_257) + 12 * 2 * 1024**2 * 768,
    "inception-v3": 5_713_216_096,
    "ptb-lstm-large": 35 * (2 * 4 * 1500 * 3000 + 1500 * 10_000),
    "resnet18": 1_814_073_344,
    "resnet50": 4_089_184_256,
    "resnet56-cifar": 125_485_696,
    "vgg16": 15_470_264_320,
}
"""Of one sample, forward, as published or by hand."""


@pytest.fixture(params=networks.catalogue())
def network(request: pytest.FixtureRequest) -> Network:
    return networks.load(request.param)


def test_network_has_title_source_and_unit(network: Network) -> None:
    assert network.title and network.source
    units = network.units_per_sample
    assert next(iter(units)) == network.unit and min(units.values()) > 0


def test_network_builds_with_positive_costs(network: Network) -> None:
    graph = network.graph
    assert 0 < graph.trainable_parameters <= graph.stored_parameters
    assert 0 < graph.forward_flops <= graph.backward_flops
    assert graph.forward_bytes(batch=2) > graph.forward_bytes() > 0


def test_network_survives_a_json_round_trip(network: Network) -> None:
    assert Graph.from_dict(json.loads(json.dumps(network.graph.to_dict()))) == network.graph


def test_fingerprints_of_networks_are_unique() -> None:
    fingerprints = [network.graph.fingerprint for network in networks.catalogue().values()]
    assert len(set(fingerprints)) == len(fingerprints)


@pytest.mark.parametrize("name", PARAMETERS)
def test_trainable_parameters_are_as_published(name: str) -> None:
    assert networks.load(name).graph.trainable_parameters == PARAMETERS[name]


@pytest.mark.parametrize("name", MULTIPLY_ADDS)
def test_forward_flops_are_as_published(name: str) -> None:
    assert networks.load(name).graph.forward_flops == 2 * MULTIPLY_ADDS[name]
