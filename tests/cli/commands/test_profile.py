"""`steptime profile`: the profile as text and as JSON, and failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Command, Snapshot, Terminal
from factories import make_attempt
from steptime.analysis.step_profile import read_profile
from steptime.cli.render.profile import show
from steptime.core.case import Case
from steptime.store.blobs import Blobs
from steptime.store.folder import FolderStore

PYTORCH = ["--workload", "mnist-mlp", "--batch-size", "4", "--set", "threads=1"]
NUMPY = ["--workload", "mnist-mlp", "--batch-size", "4", "--set", "framework=numpy"]
OPERATORS = [
    {"name": "aten::mm", "class": "matrix product", "calls": 6.0, "share": 0.6},
    {"name": "aten::add", "class": "elementwise", "calls": 10.0, "share": 0.25},
]
PROFILE = {
    "phases": {
        "seconds": {"forward": 0.0004, "backward": 0.0006},
        "plain_seconds": 0.001,
        "perturbation": 0.005,
        "how": "by marks",
    },
    "operators": {
        "classes": {"matrix product": 0.6, "elementwise": 0.25, "framework overhead": 0.15},
        "operators": OPERATORS,
        "plain_seconds": 0.001,
        "perturbation": 0.05,
    },
    "memory": {"held_bytes": {"weights": 3 << 20, "activations": 1 << 20}},
    "absent": {"trace": "the profiler wrote none."},
}


@pytest.mark.parametrize("columns", [80, 120])
def test_profile_as_text(columns: int, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = make_attempt([10**6] * 40, task="profile", findings={"profile": PROFILE})
    profile = read_profile(attempt)
    assert profile is not None
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", str(columns))
    show(profile, Path("results"))
    snapshot(f"profile-{columns}", terminal.getvalue())


@pytest.mark.live
def test_profile_is_stored_with_its_trace_and_is_no_measurement(
    steptime: Command, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    done = steptime("profile", *PYTORCH)
    assert done.returncode == 0, done.stderr
    for text in ("backward", "aten::", "memory at the peak"):
        assert text in done.stdout
    store = FolderStore(tmp_path / "results")
    (attempt,) = store.attempts("profile")
    assert Blobs(store.path).is_intact(attempt.findings["profile"]["operators"]["trace"]["sha256"])
    assert store.attempts() == []


@pytest.mark.live
def test_profile_json_says_what_a_framework_does_not_tell(steptime: Command) -> None:
    done = steptime("profile", *NUMPY, "--set", "precision=fp64", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 0 and document["phases"]["how"] == "by difference"
    assert document["absent"]["operators"]


@pytest.mark.live
def test_profile_of_an_unsupported_case_exits_3(steptime: Command) -> None:
    done = steptime("profile", *NUMPY, "--set", "precision=bf16")
    assert done.returncode == 3 and "failed: mnist-mlp" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.live
def test_profile_of_a_stored_result_uses_its_case(
    steptime: Command, store_session: Callable[..., list[str]]
) -> None:
    case = Case(
        workload="mnist-mlp", framework="numpy", precision="fp64", mode="compiled", batch_size=7
    )
    (identifier,) = store_session([case], processes=1)
    done = steptime("profile", identifier[-8:])
    assert "mnist-mlp training numpy compiled cpu fp64 batch 7" in done.stderr
