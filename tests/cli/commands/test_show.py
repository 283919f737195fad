"""`steptime show`: networks, stored results, plans of HPE DLBS."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Command, Snapshot
from steptime import networks
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.record import Failure

OWN = "from steptime.graph import network\n@network('mine', title='My own', source='here')\n"
TRANSLATION = """from steptime.graph import network
@network('mine', title='', source='', unit='sentences')
def f(net):
    return net.embedding(net.slice(net.tokens(7, 9), 4, 7), 9, 9)
"""


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("network", ["lenet5", "ptb-lstm-small"])
def test_layers_and_totals_of_a_network(
    network: str, columns: int, steptime: Command, snapshot: Snapshot
) -> None:
    snapshot(f"show-{network}-{columns}", steptime("show", network, columns=columns).stdout)


def test_document_of_a_network_adds_up(steptime: Command) -> None:
    document = json.loads(steptime("show", "resnet50", "--json").stdout)
    layers = document["layers"]
    assert document["trainable_parameters"] == 25_557_032
    assert sum(layer["parameters"] for layer in layers) == document["trainable_parameters"]
    assert sum(layer["forward_flops"] for layer in layers) == document["forward_flops"]
    assert sum(layer["backward_flops"] for layer in layers) == document["backward_flops"]
    assert document["fingerprint"] == networks.load("resnet50").graph.fingerprint


def test_tied_weights_count_in_the_layer_that_owns_them(steptime: Command) -> None:
    document = json.loads(steptime("show", "transformer-base", "--json").stdout)
    counts = {layer["name"]: layer["parameters"] for layer in document["layers"]}
    assert counts["embedding1"] == 37_000 * 512
    assert counts["tied_embedding1"] == counts["tied_dense1"] == 0
    assert sum(counts.values()) == document["trainable_parameters"]


@pytest.mark.parametrize(
    ("network", "rule"),
    [
        ("resnet18", "momentum, rate 0.1, momentum 0.9, weight decay 0.0001"),
        ("gpt2", "adam, rate 0.0006, decoupled weight decay 0.1"),
    ],
)
def test_optimizer_says_how_weights_decay(network: str, rule: str, steptime: Command) -> None:
    assert json.loads(steptime("show", network, "--json").stdout)["optimizer"] == rule


def test_a_sample_of_a_translation_has_tokens_of_both_languages(
    steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(TRANSLATION)
    units = "1 sentence, 4 source tokens, 3 target tokens"
    assert f"{'one sample':30}{units}\n" in steptime("show", "own.py:mine").stdout


def test_a_network_in_a_file_is_shown(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(f"{OWN}def f(net):\n    return net.dense(net.input(4), 2)\n")
    assert steptime("show", "own.py:mine").stdout.startswith("My own: here\n")


@pytest.mark.parametrize("processes", [1, 3, 8])
def test_a_stored_result_in_full(
    processes: int,
    steptime: Command,
    snapshot: Snapshot,
    store_session: Callable[..., list[str]],
) -> None:
    (identifier,) = store_session([Case(workload="mnist-mlp")], processes=processes)
    snapshot(f"show-result-{processes}", steptime("show", identifier[-8:]).stdout)


def test_a_stored_failure_is_shown_with_its_reason(
    steptime: Command, store_session: Callable[..., list[str]]
) -> None:
    failure = Failure(cause=Cause.OUT_OF_MEMORY, reason="64 GiB needed.")
    (identifier,) = store_session([Case(workload="lenet5")], failure=failure, measurement=None)
    lines = steptime("show", identifier[-8:]).stdout.splitlines()
    assert lines[0] == "Nothing was measured: the case failed."
    assert lines[1].endswith("64 GiB needed.")


def test_a_plan_of_dlbs_is_shown_as_toml(steptime: Command, tmp_path: Path) -> None:
    content = {
        "parameters": {"exp.framework": "pytorch", "exp.docker": False},
        "variables": {"exp.model": ["resnet50"]},
    }
    (tmp_path / "plan.json").write_text(json.dumps(content))
    lines = steptime("show", "plan.json").stdout.splitlines()
    assert lines[0] == "# From a plan of HPE DLBS." and 'workload = ["resnet50"]' in lines
    document = json.loads(steptime("show", "plan.json", "--json").stdout)
    (note,) = document["notes"]
    assert note.startswith("no counterpart: exp.docker = False")
