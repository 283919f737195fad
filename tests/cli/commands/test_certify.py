"""`steptime certify` as a user meets it: the sentence, the table, a page's table, refusals, and what `compare` makes of
it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving")]
NETWORK = """
from steptime.graph import Net, Tensor, adam, network

@network("small", title="small", source="here", optimizer=adam())
def small(net: Net) -> Tensor:
    return net.dense(net.dropout(net.relu(net.dense(net.input(6), 8)), 0.2), 4)
"""
ITSELF = ["--framework", "numpy", "--precision", "fp64"]


@pytest.fixture
def small(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(NETWORK)
    return "own.py:small"


def test_the_sentence_that_matters_comes_first(steptime: Command, small: str) -> None:
    done = steptime("certify", small, *ITSELF)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout.startswith("numpy ")
        and "computes own.py:small: 7 of 7 items pass" in done.stdout
    )
    assert "trajectory" in done.stdout and "share of its bound" in done.stdout


def test_json_tells_each_item_with_error_bound_and_place(steptime: Command, small: str) -> None:
    found = json.loads(steptime("certify", small, *ITSELF, "--json").stdout)["certificates"][0]
    assert found["certificate"]["passed"] and found["certificate"]["covers"] == "training"
    item = found["certificate"]["items"][2]
    assert (
        item["item"] == "gradients" and item["error"] <= item["bound"] and "dense" in item["where"]
    )


def test_a_page_has_a_column_for_every_lowering_and_reasons_below(
    steptime: Command, small: str
) -> None:
    lines = steptime(
        "certify", small, *ITSELF, "--mode", "eager", "--mode", "graph", "--markdown"
    ).stdout.splitlines()
    assert lines[0].startswith("| network | precision | numpy ") and lines[0].endswith(
        " | numpy graph |"
    )
    assert lines[2].startswith(f"| {small} | fp64 | pass 0") and lines[2].endswith(" | none (1) |")
    assert lines[-1].startswith("1. unsupported: mode graph")


def test_int8_is_refused_with_its_reason(steptime: Command, small: str) -> None:
    done = steptime("certify", small, "--framework", "calm", "--precision", "int8")
    assert (
        done.returncode == 3
        and "int8 is another network; its price is its accuracy part." in done.stdout
    )


def test_what_is_not_installed_is_a_row_with_the_line_that_installs_it(
    steptime: Command, small: str
) -> None:
    done = steptime(
        "certify", small, "--framework", "absent", "--framework", "numpy", "--precision", "fp64"
    )
    assert done.returncode == 0 and "a-package-that-nobody-has>=2" in done.stdout


def test_a_framework_that_crashes_fails_the_command(steptime: Command, small: str) -> None:
    done = steptime(
        "certify", small, "--framework", "segfault", "--framework", "numpy", "--precision", "fp32"
    )
    assert done.returncode == 3 and "none: own.py:small segfault" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Name the networks to certify, or say --all"),
        (["mnist-mlq"], "Did you mean 'mnist-mlp'?"),
        (["mnist-mlp", "--framework", "pytorhc"], "Did you mean 'pytorch'?"),
        (["mnist-mlp", "--precision", "fp33"], "No precision 'fp33'"),
    ],
)
def test_a_mistake_is_a_sentence(words: list[str], message: str, steptime: Command) -> None:
    done = steptime("certify", *words)
    assert done.returncode == 1 and message in done.stderr


def test_two_frameworks_are_compared_once_both_are_certified(
    steptime: Command, small: str, short_words: str
) -> None:
    pytest.importorskip("torch")
    cases = [
        f"workload={small},framework=numpy,precision=fp64,threads=1,{short_words}",
        "framework=pytorch",
    ]
    refused = steptime("compare", *cases)
    assert refused.returncode == 5
    command = f"certify {small} --framework numpy --framework pytorch --precision fp64"
    assert f"`steptime {command}`" in refused.stdout
    steptime(*command.split())
    compared = steptime("compare", *cases)
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "note: certified: both compute the same network" in compared.stdout
