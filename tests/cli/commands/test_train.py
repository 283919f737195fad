"""`steptime train`: a network learns from real data, and nothing half-written is left where it does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.graph.weights import load
from steptime.networks import load as network
from steptime.store.folder import FolderStore
from steptime.workloads.supervised import digest

pytestmark = pytest.mark.live
Command = Callable[..., "subprocess.CompletedProcess[str]"]
NUMPY = [
    "--framework",
    "numpy",
    "--set",
    "precision=fp64",
    "--set",
    "batch_size=200",
    "--set",
    "threads=1",
]


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_network_learns_and_its_weights_are_kept(
    steptime: Command, real_data: Path, tmp_path: Path
) -> None:
    done = steptime("train", "mnist-mlp", "--save", "mlp.safetensors", "--epochs", "1", *NUMPY)
    assert done.returncode == 0, done.stderr
    assert "epoch 1 of 1: loss" in done.stdout and "mnist-mlp learned MNIST" in done.stdout
    assert left(tmp_path) == ["mlp.safetensors", "results"]
    load(tmp_path / "mlp.safetensors", network("mnist-mlp").graph)
    (attempt,) = FolderStore(tmp_path / "results").attempts("train")
    told = attempt.findings["training"]
    assert (
        told["test"]["value"] > 0.9
        and told["test"]["low"] < told["test"]["value"] < told["test"]["high"]
    )
    assert told["weights"]["sha256"] == digest(str(tmp_path / "mlp.safetensors"))
    assert FolderStore(tmp_path / "results").attempts() == []  # no measurement


def test_weights_go_into_a_measurement_s_record(
    steptime: Command, short_flags: list[str], tmp_path: Path
) -> None:
    from steptime.graph.weights import initial_weights, save

    save(tmp_path / "a.safetensors", dict(initial_weights(network("mnist-mlp").graph, 3)))
    words = [
        "--workload",
        "mnist-mlp",
        "--phase",
        "inference",
        "--set",
        "weights=a.safetensors",
        *NUMPY[2:],
    ]
    done = steptime("run", *words, "--set", "framework=numpy", *short_flags)
    assert done.returncode == 0, done.stderr
    first = FolderStore(tmp_path / "results").attempts()[0]
    assert first.network["weights"] == digest(str(tmp_path / "a.safetensors"))


@pytest.mark.parametrize(
    "words, code, sentence",
    [
        (
            ["mnist-mlp", "--data", "nowhere"],
            3,
            "MNIST is missing: no train-images-idx3-ubyte.gz in ",
        ),
        (["resnet50"], 3, "resnet50 names no dataset to learn from"),
        (["mnist-mpl"], 1, "No workload 'mnist-mpl'. Did you mean 'mnist-mlp'?"),
        (
            ["mnist-mlp", "--set", "batch_size=1,2"],
            1,
            "Train one case at a time; these settings give 2.",
        ),
    ],
)
def test_what_can_not_be_trained_is_a_sentence(
    words: list[str], code: int, sentence: str, steptime: Command, tmp_path: Path
) -> None:
    done = steptime(
        "train",
        *words,
        "--save",
        "a.safetensors",
        "--framework",
        "numpy",
        "--set",
        "precision=fp64",
    )
    assert done.returncode == code and sentence in done.stderr and "Traceback" not in done.stderr
    assert "a.safetensors" not in left(tmp_path)


@pytest.mark.parametrize(
    "file, sentence", [("a.bin", "name the file a.bin.safetensors"), ("no/a.safetensors", "/no of")]
)
def test_a_file_that_can_not_be_written_is_told_before_the_training(
    file: str, sentence: str, steptime: Command, tmp_path: Path
) -> None:
    done = steptime("train", "mnist-mlp", "--save", file)
    assert done.returncode == 1 and sentence in done.stderr and left(tmp_path) == []


def test_a_failure_is_a_document_too(steptime: Command) -> None:
    done = steptime(
        "train", "mnist-mlp", "--save", "a.safetensors", "--framework", "onnxruntime", "--json"
    )
    assert done.returncode == 3 and json.loads(done.stdout)["failure"]["cause"] in (
        "unsupported",
        "not_installed",
    )


def test_an_interrupt_leaves_no_weights(real_data: Path, tmp_path: Path) -> None:
    command = [
        "-P",
        "-m",
        "steptime",
        "train",
        "mnist-mlp",
        "--save",
        "a.safetensors",
        "--epochs",
        "1000",
        *NUMPY,
    ]
    with subprocess.Popen(
        [sys.executable, *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        while not list(tmp_path.glob("results/journal/*/*/*/*.jsonl")):
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        assert "interrupted: no weights were written." in process.communicate()[1]
    assert process.returncode == 130 and left(tmp_path) == ["results"]
    (attempt,) = FolderStore(tmp_path / "results").attempts("train")
    assert attempt.failure is not None and attempt.failure.cause == "cancelled"
