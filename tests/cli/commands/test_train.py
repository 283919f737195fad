"""`steptime train`: weights, records, failures; an interrupt leaves nothing half-written."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from command_line import Command, Process
from steptime.graph.weights import initial_weights, load, save
from steptime.networks import load as load_network
from steptime.store.folder import FolderStore
from steptime.workloads.supervised import digest

pytestmark = pytest.mark.live
SETTINGS = ["--set", "precision=fp64", "--set", "batch_size=200", "--set", "threads=1"]
NUMPY = ["--framework", "numpy", *SETTINGS]
TRAIN = ["train", "mnist-mlp", "--save", "a.safetensors"]


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_train_saves_weights_and_records_the_accuracy(
    steptime: Command, real_data: Path, tmp_path: Path
) -> None:
    done = steptime(*TRAIN, "--epochs", "1", *NUMPY)
    assert done.returncode == 0, done.stderr
    assert "epoch 1 of 1: loss" in done.stdout and "mnist-mlp trained on MNIST" in done.stdout
    assert file_names(tmp_path) == ["a.safetensors", "results"]
    load(tmp_path / "a.safetensors", load_network("mnist-mlp").graph)
    store = FolderStore(tmp_path / "results")
    (attempt,) = store.attempts("train")
    training = attempt.findings["training"]
    test = training["test"]
    assert test["value"] > 0.9 and test["low"] < test["value"] < test["high"]
    assert training["weights"]["sha256"] == digest(str(tmp_path / "a.safetensors"))
    # Training is no measurement.
    assert store.attempts() == []


def test_run_records_the_digest_of_its_weights(
    steptime: Command, short_flags: list[str], tmp_path: Path
) -> None:
    weights = dict(initial_weights(load_network("mnist-mlp").graph, 3))
    save(tmp_path / "a.safetensors", weights)
    flags = ["--workload", "mnist-mlp", "--phase", "inference", "--set", "weights=a.safetensors"]
    done = steptime("run", *flags, "--set", "framework=numpy", *SETTINGS, *short_flags)
    assert done.returncode == 0, done.stderr
    first = FolderStore(tmp_path / "results").attempts()[0]
    assert first.network["weights"] == digest(str(tmp_path / "a.safetensors"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["mnist-mlp", "--data", "nowhere"], "no train-images-idx3-ubyte.gz in "),
        (["resnet50"], "resnet50 names no dataset"),
    ],
)
def test_train_without_data_exits_3_and_writes_no_weights(
    arguments: list[str], sentence: str, steptime: Command, tmp_path: Path
) -> None:
    done = steptime("train", *arguments, "--save", "a.safetensors", *NUMPY)
    assert done.returncode == 3 and sentence in done.stderr
    assert "a.safetensors" not in file_names(tmp_path)


def test_train_json_has_the_failure(steptime: Command) -> None:
    done = steptime(*TRAIN, "--framework", "onnxruntime", "--json")
    cause = json.loads(done.stdout)["failure"]["cause"]
    assert done.returncode == 3 and cause in ("unsupported", "not_installed")


def test_an_interrupt_leaves_no_weights(
    real_data: Path, tmp_path: Path, steptime_process: Process
) -> None:
    with steptime_process(*TRAIN, "--epochs", "1000", *NUMPY) as process:
        while not list(tmp_path.glob("results/journal/*/*/*/*.jsonl")):
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        assert "interrupted: no weights were written." in process.communicate()[1]
    assert process.returncode == 130 and file_names(tmp_path) == ["results"]
    (attempt,) = FolderStore(tmp_path / "results").attempts("train")
    assert attempt.failure is not None and attempt.failure.cause == "cancelled"
