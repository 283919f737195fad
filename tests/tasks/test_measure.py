"""What a measurement stores besides its samples."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from steptime import networks, workloads
from steptime.core.accuracy import explain_missing_accuracy, known_findings
from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.measurement import Measurement
from steptime.core.protocol import Protocol
from steptime.graph.weights import initial_weights, save
from steptime.store.journal import Journal, uuid7
from steptime.store.reader import read
from steptime.tasks import TaskContext
from steptime.tasks.measure import PrecisionComparison, add_kernels, perform

pytestmark = pytest.mark.slow


@pytest.fixture
def measurement() -> Measurement:
    shape = {
        "stamps": (0, 5),
        "device_ns": None,
        "blocks": (),
        "cut": 0,
        "steady": True,
        "clock": {},
        "starts": {},
    }
    return Measurement(group=1, facts={"threads": 2}, **shape)  # type: ignore[arg-type]


class WithKernels:
    def kernels(self) -> dict[str, int]:
        return {"gemm_avx512": 3}


class Broken:
    def kernels(self) -> dict[str, int]:
        raise RuntimeError("the profiler is taken")


def test_add_kernels_adds_a_fact(measurement: Measurement) -> None:
    assert add_kernels(measurement, WithKernels()).facts == {
        "threads": 2,
        "kernels": {"gemm_avx512": 3},
    }


def test_add_kernels_adds_nothing_if_unknown(
    measurement: Measurement,
) -> None:
    assert add_kernels(measurement, object()) is measurement


def test_add_kernels_keeps_measurement_if_profiler_fails(measurement: Measurement) -> None:
    facts = add_kernels(measurement, Broken()).facts
    assert facts == {"threads": 2, "kernels_problem": "RuntimeError: the profiler is taken"}


class Rounding:
    """A framework whose low precisions keep few digits, and whose training spoils the weights."""

    timer = None

    def __init__(self, work: Any, case: Case) -> None:
        self.case, self.weights, self.sizes = case, dict(work.weights), list[int]()

    def step(self) -> None:
        if self.case.phase == "training":
            self.weights = {}

    def feed(self, batch: dict[str, Any]) -> None:
        assert len(batch["input"]) == self.case.batch_size and self.case.data == "host"

    def load(self, weights: dict[str, Any]) -> None:
        self.weights = weights

    def predict(self, batch: dict[str, Any]) -> Any:
        self.sizes.append(len(batch["input"]))
        logits = (
            batch["input"].reshape(len(batch["input"]), -1) @ self.weights["dense1.weight"][:10].T
        )
        return logits if self.case.precision == "fp32" else np.round(logits, 1)

    def wait(self) -> None: ...

    def compilations(self) -> int:
        return 0

    def memory(self) -> dict[str, int]:
        return {}

    facts = memory


def measured(
    path: Path,
    short: Protocol,
    answers: Any = None,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> Any:
    case = Case(workload="mnist-mlp", **{"batch_size": 5, **settings})
    job = Job(
        id=uuid7(),
        session="s",
        plan="p",
        process=0,
        case=case,
        protocol=short,
        options=options or {},
    )
    with Journal(path) as journal:
        journal.begin(job)
        framework: Any = SimpleNamespace(lower=Rounding, MODES=("eager", "compiled"))
        perform(TaskContext(job, journal, framework, answers))
    return read(path)


@pytest.mark.parametrize("phase", ["inference", "training"])
def test_measure_stores_accuracy_loss_of_low_precision(
    phase: str, tmp_path: Path, short: Protocol
) -> None:
    attempt = measured(tmp_path / "a.jsonl", short, precision="bf16", phase=phase)
    assert attempt.failure is None and explain_missing_accuracy("bf16", attempt.findings) == ""
    accuracy = attempt.findings["accuracy"]
    assert 0 < accuracy["largest_logit_error"] < 0.051 and accuracy["samples"] == 64
    assert (accuracy["data"], accuracy["task"], accuracy["task_absent"]) == (
        "synthetic",
        None,
        "the weights are initial ones",
    )


def test_measure_finds_accuracy_loss_against_the_first_mode(
    tmp_path: Path, short: Protocol
) -> None:
    """A compiled reference would be compiled for one use."""
    attempt = measured(tmp_path / "a.jsonl", short, precision="bf16", mode="compiled")
    assert attempt.findings["accuracy"]["reference"] == "fp32, pytorch eager"


def test_measure_reports_accuracy_loss_after_turns(
    tmp_path: Path, short: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = StringIO()
    monkeypatch.setattr("sys.stdin", StringIO("turn\nturn\nend\n"))
    attempt = measured(tmp_path / "a.jsonl", short, answers, precision="bf16", phase="inference")
    assert answers.getvalue().split() == ["ready", "done", "done"]
    assert explain_missing_accuracy("bf16", attempt.findings) == ""


def test_measure_stores_no_accuracy_loss_of_full_precision(tmp_path: Path, short: Protocol) -> None:
    findings = measured(tmp_path / "a.jsonl", short, precision="fp32").findings
    assert set(findings) == {"seconds"}


@pytest.mark.parametrize("prefetch", [0, 2])
def test_measure_reads_another_real_batch_in_each_step(
    prefetch: int, tmp_path: Path, short: Protocol, tiny_mnist: Path
) -> None:
    attempt = measured(
        tmp_path / "a.jsonl", short, data="real", phase="inference", prefetch=prefetch
    )
    assert attempt.failure is None and attempt.measurement is not None
    data = attempt.findings["data"]
    steps = attempt.measurement.group * (len(attempt.measurement.stamps) - 1)
    assert data["batches_read"] >= steps + attempt.measurement.checks["unstamped_steps"]
    assert (data["samples"], data["bytes_per_step"], data["prefetch"]) == (60, 5 * 785, prefetch)


def test_measure_reads_real_data_from_the_tier(
    tmp_path: Path, short: Protocol, tiny_mnist: Path
) -> None:
    case = Case(workload="mnist-mlp", batch_size=5, data="real", staging="fast", page_cache="cold")
    options = {"tier": str(tmp_path)}
    job = Job(
        id=uuid7(), session="s", plan="p", process=0, case=case, protocol=short, options=options
    )
    with Journal(tmp_path / "a.jsonl") as journal:
        journal.begin(job)
        framework: Any = SimpleNamespace(lower=Rounding, MODES=("eager", "compiled"))
        perform(TaskContext(job, journal, framework))
    attempt = read(tmp_path / "a.jsonl")
    assert attempt is not None and attempt.findings["staging"]["bytes_per_second"] > 0
    assert attempt.findings["data"]["on"] == attempt.findings["staging"]["on"]
    assert attempt.findings["data"]["page_cache"]["requested"] == "cold" and not list(
        tmp_path.glob("steptime-*")
    )


def test_accuracy_loss_is_equal_in_every_process(tmp_path: Path, short: Protocol) -> None:
    first, second = (
        measured(tmp_path / name, short, precision="bf16") for name in ("a.jsonl", "b.jsonl")
    )
    assert first.findings["accuracy"] == second.findings["accuracy"]


def test_measure_stores_a_known_accuracy_loss_without_predicting(
    tmp_path: Path, short: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measured(tmp_path / "a.jsonl", short, precision="bf16")
    monkeypatch.delattr(Rounding, "predict")
    known = known_findings([first])
    second = measured(tmp_path / "b.jsonl", short, options=known, precision="bf16")
    accuracy = second.findings["accuracy"]
    assert second.failure is None and accuracy.pop("found_by") == first.id
    assert accuracy == first.findings["accuracy"]


def test_accuracy_loss_of_trained_weights_uses_the_test_set(
    tmp_path: Path, short: Protocol, tiny_mnist: Path
) -> None:
    path = tmp_path / "weights.safetensors"
    save(path, dict(initial_weights(networks.load("mnist-mlp").graph, 7)))
    attempt = measured(
        tmp_path / "a.jsonl", short, precision="bf16", weights=str(path), batch_size=10
    )
    accuracy = attempt.findings["accuracy"]
    assert (accuracy["data"], accuracy["samples"], accuracy["task"]["metric"]) == (
        "test set",
        25,
        "top-1 accuracy",
    )
    assert (
        accuracy["task"]["before_interval"][0]
        <= accuracy["task"]["before"]
        <= accuracy["task"]["before_interval"][1]
    )


def test_precision_comparison_keeps_the_batch_size() -> None:
    case = Case(workload="mnist-mlp", batch_size=7, phase="inference", precision="fp16")
    work = workloads.load(case.workload).build(case)
    program = Rounding(work, case)
    outputs = PrecisionComparison.choose(case, work).predict(program)
    assert set(program.sizes) == {7} and sum(map(len, outputs)) == 64


def compared_samples(case: Case) -> tuple[str, np.ndarray, np.ndarray]:
    """The inputs and targets that count, in order."""
    comparison = PrecisionComparison.choose(case, workloads.load(case.workload).build(case))
    inputs = [batch["input"][:count] for batch, count in comparison.batches]
    return comparison.data, np.concatenate(inputs), np.concatenate(comparison.targets)


@pytest.mark.parametrize("batch_size", [3, 8, 24, 64, 100])
@pytest.mark.parametrize("trained", [False, True])
def test_precision_comparison_has_the_same_samples_for_every_batch_size(
    batch_size: int, trained: bool, tmp_path: Path, tiny_mnist: Path
) -> None:
    settings: dict[str, Any] = {"workload": "mnist-mlp", "precision": "bf16"}
    if trained:
        settings["weights"] = str(tmp_path / "weights.safetensors")
        save(
            tmp_path / "weights.safetensors",
            dict(initial_weights(networks.load("mnist-mlp").graph, 7)),
        )
    first = compared_samples(Case(**settings, batch_size=1))
    second = compared_samples(Case(**settings, batch_size=batch_size))
    assert first[0] == second[0] == ("test set" if trained else "synthetic")
    assert len(first[1]) == (25 if trained else 64)
    np.testing.assert_array_equal(first[1], second[1])
    np.testing.assert_array_equal(first[2], second[2])


@pytest.fixture
def weights(tmp_path: Path) -> str:
    path = tmp_path / "weights.safetensors"
    save(path, dict(initial_weights(networks.load("mnist-mlp").graph, 7)))
    return str(path)


def test_accuracy_loss_is_equal_for_every_batch_size(
    tmp_path: Path, short: Protocol, weights: str, tiny_mnist: Path
) -> None:
    losses = []
    for size in (1, 3, 8, 64):
        settings = {"precision": "bf16", "weights": weights, "batch_size": size}
        attempt = measured(tmp_path / f"{size}.jsonl", short, **settings)
        losses.append(attempt.findings["accuracy"])
    for loss in losses[1:]:
        assert loss["samples"] == losses[0]["samples"] == 25
        assert loss["task"] == losses[0]["task"]
        largest = losses[0]["largest_logit_error"]
        assert loss["largest_logit_error"] == pytest.approx(largest, rel=1e-3)


def test_measure_stores_the_accuracy_of_full_precision(
    tmp_path: Path, short: Protocol, weights: str, tiny_mnist: Path
) -> None:
    settings = {"phase": "inference", "weights": weights}
    task = measured(tmp_path / "a.jsonl", short, **settings).findings["task"]
    assert (task["metric"], task["samples"]) == ("top-1 accuracy", 25)
    assert 0 <= task["interval"][0] <= task["value"] <= task["interval"][1] <= 1
    low = measured(tmp_path / "b.jsonl", short, precision="bf16", **settings)
    assert low.findings["accuracy"]["task"]["before"] == task["value"]


@pytest.mark.parametrize("phase", ["training", "forward"])
def test_measure_stores_no_accuracy_of_weights_that_training_moved(
    phase: str, tmp_path: Path, short: Protocol, weights: str, tiny_mnist: Path
) -> None:
    attempt = measured(tmp_path / "a.jsonl", short, phase=phase, weights=weights)
    assert "task" not in attempt.findings


def test_measure_stores_no_accuracy_without_the_test_set(
    tmp_path: Path, short: Protocol, weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPTIME_DATA", str(tmp_path / "nothing"))
    attempt = measured(tmp_path / "a.jsonl", short, phase="inference", weights=weights)
    assert set(attempt.findings) == {"seconds"}
