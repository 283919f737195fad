"""`steptime profile`: what is inside a step, and mistakes as sentences."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.core.record import Attempt
from steptime.store.blobs import Blobs
from steptime.store.folder import FolderStore

Command = Callable[..., "subprocess.CompletedProcess[str]"]
PYTORCH = ["--workload", "mnist-mlp", "--batch-size", "4", "--set", "threads=1"]


@pytest.mark.live
def test_a_look_inside_is_told_and_kept(steptime: Command, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    done = steptime("profile", *PYTORCH)
    assert done.returncode == 0, done.stderr
    sentence = done.stdout.splitlines()[1]
    assert "% of a step is" in sentence and "are held" in sentence
    assert all(
        word in done.stdout
        for word in ("backward", "aten::", "memory at the peak", "changed the step by")
    )
    store = FolderStore(tmp_path / "results")
    (attempt,) = store.attempts("profile")
    assert Blobs(store.path).is_intact(attempt.findings["profile"]["operators"]["trace"]["sha256"])
    assert store.attempts() == []  # no measurement


@pytest.mark.live
def test_a_framework_that_tells_little_says_why(steptime: Command) -> None:
    words = [
        "--workload",
        "mnist-mlp",
        "--batch-size",
        "4",
        "--set",
        "framework=numpy",
        "--set",
        "precision=fp64",
    ]
    done = steptime("profile", *words, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["phases"]["how"] == "by difference"
    assert "do not report their operators" in found["absent"]["operators"]


def test_what_can_not_run_fails_with_its_reason(steptime: Command) -> None:
    done = steptime(
        "profile", "--workload", "mnist-mlp", "--set", "framework=numpy", "--set", "precision=bf16"
    )
    assert (
        done.returncode == 3
        and "failed: mnist-mlp" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_a_stored_run_names_the_case(
    steptime: Command, tmp_path: Path, attempt_of: Callable[..., Attempt], write: Callable[..., str]
) -> None:
    made = attempt_of(
        [10**6] * 40, blocks=1, framework="numpy", precision="fp64", mode="compiled", batch_size=7
    )
    write(FolderStore(tmp_path / "results"), made)
    identifier = FolderStore(tmp_path / "results").attempts()[0].id
    done = steptime("profile", identifier[-8:])
    assert "mnist-mlp training numpy compiled cpu fp64 batch 7" in done.stderr
    both = steptime("profile", identifier[-8:], "--batch-size", "3")
    assert both.returncode == 1 and "not both" in both.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nobody"], "No result has the id 'nobody'"),
        (["--workload", "mnist-mlp", "--batch-size", "1,2"], "one case at a time"),
        (["--workload", "nothing"], "nothing"),
    ],
)
def test_a_mistake_is_told_as_a_sentence(
    steptime: Command, words: list[str], sentence: str
) -> None:
    done = steptime("profile", *words)
    assert done.returncode == 1 and sentence in done.stderr and "Traceback" not in done.stderr
