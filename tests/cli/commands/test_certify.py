"""`steptime certify`: exit codes, JSON, Markdown, and what `compare` makes of certificates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Command
from steptime.store.folder import FolderStore

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


def test_certify_proves_and_then_reads_its_certificate(steptime: Command, small: str) -> None:
    done = steptime("certify", small, *ITSELF)
    assert (done.returncode, done.stderr) == (0, "")
    assert "computes own.py:small: 13 of 13 items are proved" in done.stdout
    again = steptime("certify", small, *ITSELF, "--json")
    (entry,) = json.loads(again.stdout)["certificates"]
    assert entry["certificate"]["passed"] and entry["certificate"]["covers"] == "training"
    item = entry["certificate"]["items"][2]
    assert item["item"] == "gradients" and item["error"] <= item["bound"]
    assert "dense" in item["where"] and entry["certificate"]["id"][-8:] in done.stdout


def test_markdown_has_a_column_per_mode_and_reasons_below(steptime: Command, small: str) -> None:
    flags = [*ITSELF, "--mode", "eager", "--mode", "graph", "--markdown"]
    lines = steptime("certify", small, *flags).stdout.splitlines()
    assert lines[0].startswith("| network | precision | numpy ")
    assert lines[0].endswith(" | numpy graph |")
    assert lines[2].startswith(f"| {small} | fp64 | pass 0") and lines[2].endswith(" | none (1) |")
    assert lines[-1].startswith("1. unsupported: mode graph")


def test_a_framework_that_is_not_installed_is_no_failure(steptime: Command, small: str) -> None:
    flags = ["--framework", "absent", "--framework", "numpy", "--precision", "fp64"]
    done = steptime("certify", small, *flags)
    assert done.returncode == 0 and "a-package-that-nobody-has>=2" in done.stdout


def test_int8_alone_exits_3_with_its_reason(steptime: Command, small: str) -> None:
    done = steptime("certify", small, "--framework", "calm", "--precision", "int8")
    assert done.returncode == 3 and "int8 is another network" in done.stdout


def test_a_framework_that_crashes_exits_3(steptime: Command, small: str) -> None:
    flags = ["--framework", "segfault", "--framework", "numpy", "--precision", "fp32"]
    done = steptime("certify", small, *flags)
    assert done.returncode == 3 and "none: own.py:small segfault" in done.stdout


def test_an_unknown_precision_is_refused(steptime: Command) -> None:
    done = steptime("certify", "mnist-mlp", "--framework", "numpy", "--precision", "fp33")
    assert done.returncode == 1 and "No precision 'fp33'" in done.stderr


def test_two_frameworks_are_compared_once_both_are_certified(
    steptime: Command, small: str, short_settings: str
) -> None:
    pytest.importorskip("torch")
    a = f"workload={small},framework=numpy,precision=fp64,threads=1,{short_settings}"
    refused = steptime("compare", a, "framework=pytorch")
    assert refused.returncode == 5
    command = f"certify {small} --framework numpy --framework pytorch --precision fp64"
    assert f"`steptime {command}`" in refused.stdout
    steptime(*command.split())
    compared = steptime("compare", a, "framework=pytorch")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "note: certified: both compute the same network" in compared.stdout


def test_a_layout_among_the_networks_is_certified(steptime: Command, small: str) -> None:
    done = steptime("certify", small, "layout=nhwc", *ITSELF, "--json")
    (entry,) = json.loads(done.stdout)["certificates"]
    assert entry["case"]["layout"] == "nhwc"
    refused = steptime("certify", small, "batch_size=4", *ITSELF)
    assert (
        refused.returncode == 1 and "certify takes layout=…, found batch_size=…" in refused.stderr
    )


def test_jobs_certify_each_network_in_a_session_of_its_own(steptime: Command, small: str) -> None:
    second = Path("second.py")
    second.write_text(NETWORK.replace("small", "second"))
    done = steptime("certify", small, "second.py:second", *ITSELF, "--jobs", "2")
    assert done.returncode == 0 and done.stdout.startswith("2 of 2 framework modes are proved")
    attempts = FolderStore("results").attempts("certify")
    assert len({attempt.session for attempt in attempts}) == 2
    assert {attempt.case.workload for attempt in attempts} == {small, "second.py:second"}
