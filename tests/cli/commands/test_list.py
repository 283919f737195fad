"""`steptime list`: sections, results, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields

import pytest

from command_line import Command, Snapshot
from steptime import networks, plugins
from steptime.cli.commands.list import SECTIONS
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.record import Failure


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("section", ["networks", "workloads", "presets", "plans"])
def test_list_of_each_section(
    section: str, columns: int, steptime: Command, snapshot: Snapshot
) -> None:
    snapshot(f"list-{section}-{columns}", steptime("list", section, columns=columns).stdout)


def test_list_without_a_section_has_all_but_results(steptime: Command) -> None:
    shown = steptime("list").stdout
    heads = [line for line in shown.splitlines() if line.endswith(":")]
    assert heads == [f"{name}:" for name in SECTIONS] and "\x1b" not in shown


def test_list_json_agrees_with_the_plugins(steptime: Command) -> None:
    document = json.loads(steptime("list", "--json").stdout)
    names = {name: [entry["name"] for entry in entries] for name, entries in document.items()}
    assert list(names) == list(SECTIONS)
    assert names["networks"] == list(networks.catalogue())
    assert names["frameworks"] == plugins.names("frameworks")
    assert names["presets"] == ["quick", "standard", "gold", "single"]
    assert "tour" in names["plans"]


def test_list_imports_no_framework_and_no_numpy() -> None:
    code = (
        "import sys; from steptime.cli.commands.list import list_command; list_command(); "
        "print(sorted(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loaded = shown.splitlines()[-1]
    assert "'rich'" in loaded and "'numpy'" not in loaded and "'torch'" not in loaded


@pytest.mark.parametrize("columns", [80, 120])
def test_list_results(
    columns: int, steptime: Command, snapshot: Snapshot, store_session: Callable[..., list[str]]
) -> None:
    store_session([Case(workload="lenet5", layout="nhwc"), Case(workload="mnist-mlp")])
    failure = Failure(cause=Cause.OUT_OF_MEMORY, reason="64 GiB needed.")
    store_session([Case(workload="vgg16")], session="t", failure=failure, measurement=None)
    snapshot(f"list-results-{columns}", steptime("list", "results", columns=columns).stdout)


def test_list_results_json_has_ids_and_status(
    steptime: Command, store_session: Callable[..., list[str]]
) -> None:
    failure = Failure(cause=Cause.OUT_OF_MEMORY, reason="64 GiB needed.")
    case = Case(workload="lenet5", layout="nhwc")
    (identifier,) = store_session([case], processes=1, failure=failure, measurement=None)
    (entry,) = json.loads(steptime("list", "results", "--json").stdout)["results"]
    assert entry["id"] == identifier[-8:]
    assert entry["case"] == "lenet5 training pytorch eager cpu fp32 batch 32 layout=nhwc"
    facts = (entry["status"], entry["processes"], entry["typical_step_seconds"])
    assert facts == ("out_of_memory", 0, None)


def test_list_settings_explains_every_setting(steptime: Command) -> None:
    entries = json.loads(steptime("list", "settings", "--json").stdout)["settings"]
    assert [entry["name"] for entry in entries] == [field.name for field in fields(Case)]
    assert all(entry["meaning"] for entry in entries)
    assert entries[2] == {
        "name": "phase",
        "default": "training",
        "values": "training, inference, forward",
        "meaning": "training with the optimizer's step, inference, or the forward pass of training",
    }
