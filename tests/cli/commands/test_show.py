"""`steptime show`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steptime import networks
from steptime.cli.commands.show import show_command
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Failure
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7


def shown(capsys: pytest.CaptureFixture[str], network: str) -> list[str]:
    show_command(network)
    return capsys.readouterr().out.splitlines()


def test_a_layer_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    row = next(line for line in shown(capsys, "lenet5") if line.startswith("conv2"))
    assert row.split() == [
        "conv2",
        "conv",
        "16",
        "×",
        "10",
        "×",
        "10",
        "2,416",
        "480,000",
        "960,000",
    ]


def test_totals_stand_below(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(shown(capsys, "resnet50"))
    assert "trainable parameters" in text and " 25,557,032\n" in text and " 25,610,152\n" in text
    assert " 8,178,368,512\n" in text
    assert networks.load("resnet50").graph.fingerprint in text


def test_a_sample_of_a_language_model_is_its_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    assert [line.split() for line in shown(capsys, "ptb-lstm-small") if "tokens" in line] == [
        ["one", "sample", "20", "tokens"]
    ]


def test_a_sample_of_a_translation_is_told_in_both_languages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "from steptime.graph import network\n@network('mine', title='', source='', unit='sentences')\n"
    (tmp_path / "own.py").write_text(
        own + "def f(net):\n    return net.embedding(net.slice(net.tokens(7, 9), 4, 7), 9, 9)\n"
    )
    assert f"{'one sample':30}1 sentence, 4 source tokens, 3 target tokens" in shown(
        capsys, f"{tmp_path}/own.py:mine"
    )


def test_the_source_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Zaremba" in shown(capsys, "ptb-lstm-small")[0]


def test_the_document_sums_up(capsys: pytest.CaptureFixture[str]) -> None:
    show_command("resnet50", json=True)
    document = json.loads(capsys.readouterr().out)
    layers = document["layers"]
    assert (
        sum(layer["parameters"] for layer in layers)
        == document["trainable_parameters"]
        == 25_557_032
    )
    assert sum(layer["forward_flops"] for layer in layers) == document["forward_flops"]
    assert sum(layer["backward_flops"] for layer in layers) == document["backward_flops"]


def test_a_lent_weight_stands_in_its_owners_row_alone(capsys: pytest.CaptureFixture[str]) -> None:
    show_command("transformer-base", json=True)
    document = json.loads(capsys.readouterr().out)
    rows = {layer["name"]: layer["parameters"] for layer in document["layers"]}
    assert (
        rows["embedding1"] == 37_000 * 512 and rows["tied_embedding1"] == rows["tied_dense1"] == 0
    )
    assert sum(rows.values()) == document["trainable_parameters"]


@pytest.mark.parametrize(
    ("network", "rule"),
    [
        ("resnet18", "momentum, rate 0.1, momentum 0.9, weight decay 0.0001"),
        ("gpt2", "adam, rate 0.0006, decoupled weight decay 0.1"),
    ],
)
def test_the_optimizer_says_how_weights_decay(
    capsys: pytest.CaptureFixture[str], network: str, rule: str
) -> None:
    assert any(
        line.startswith("optimizer") and line.endswith(rule) for line in shown(capsys, network)
    )


def test_a_network_of_ones_own_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = "from steptime.graph import network\n@network('mine', title='My own', source='here')\n"
    (tmp_path / "own.py").write_text(
        own + "def build(net):\n    return net.dense(net.input(4), 2)\n"
    )
    assert shown(capsys, f"{tmp_path}/own.py:mine")[0] == "My own: here"


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_device_is_referred_to_the_machine(device: str) -> None:
    with pytest.raises(SteptimeError, match="is a device, not a network; `steptime machine`"):
        show_command(device)


def test_a_misspelt_network_gets_the_nearest_known() -> None:
    with pytest.raises(SteptimeError, match="Did you mean 'lenet5'"):
        show_command("lenet")


def test_a_stored_result_is_shown_as_run_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEPTIME_STORE", str(tmp_path))
    job = Job(
        id=uuid7(),
        session=uuid7(),
        plan="p",
        process=0,
        case=Case(workload="lenet5"),
        protocol=Protocol(),
    )
    with Journal(FolderStore(tmp_path).journal(job.id)) as journal:
        journal.begin(job)
        journal.write_failure(Failure(cause=Cause.OUT_OF_MEMORY, reason="64 GiB wanted."))
    lines = shown(capsys, job.id[-8:])
    assert lines[0] == "Nothing was measured: the case failed." and lines[1].endswith(
        "64 GiB wanted."
    )


def test_an_id_that_nothing_has_is_referred_to_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPTIME_STORE", str(tmp_path))
    with pytest.raises(
        SteptimeError,
        match=r"has an id that begins or ends with '0198abcd'. `steptime list results`",
    ):
        show_command("0198abcd")


def test_a_file_without_a_name_gets_the_hint_how_to_name_its_network() -> None:
    with pytest.raises(SteptimeError, match=r"nets.py:NAME"):
        show_command("nets.py")


def test_a_plan_of_dlbs_is_shown_as_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {
        "parameters": {"exp.framework": "pytorch", "exp.docker": False},
        "variables": {"exp.model": ["resnet50"]},
    }
    (tmp_path / "plan.json").write_text(json.dumps(content))
    lines = shown(capsys, f"{tmp_path}/plan.json")
    assert lines[0] == "# From a plan of HPE DLBS." and 'workload = ["resnet50"]' in lines
    assert (
        "# no counterpart: exp.docker = False (containers are named in the machine file)" in lines
    )


def test_a_json_file_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("[1, 2]")
    with pytest.raises(SteptimeError, match=r"plan.json: A DLBS plan is an object with parameters"):
        show_command(f"{tmp_path}/plan.json")
