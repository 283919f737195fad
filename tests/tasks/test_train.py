from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.data.sets import NoSet, Samples
from steptime.frameworks import numpy as framework
from steptime.graph.weights import load
from steptime.store import reader
from steptime.store.journal import Journal
from steptime.tasks import TaskContext
from steptime.tasks.train import Training, evaluate, perform, shuffle
from steptime.workloads import supervised

pytestmark = pytest.mark.slow

CASE = Case(workload="mnist-mlp", framework="numpy", precision="fp64", batch_size=20)


def train(folder: Path, *, epochs: int = 2, case: Case = CASE) -> tuple[dict[str, Any], str]:
    """The findings in the journal, and the progress that was reported."""
    options = {"epochs": epochs, "save": str(folder / "trained.safetensors")}
    job = Job(
        id="a",
        session="s",
        plan="p",
        process=0,
        case=case,
        protocol=Protocol(),
        task="train",
        options=options,
    )
    listener = io.StringIO()
    with Journal(folder / "a.jsonl") as journal:
        journal.begin(job)
        perform(TaskContext(job, journal, framework, listener))
    attempt = reader.read(folder / "a.jsonl")
    assert attempt is not None and attempt.task == "train" and attempt.failure is None
    return attempt.findings["training"], listener.getvalue()


def test_train_improves_and_saves_weights_with_its_score(tiny_mnist: Path, tmp_path: Path) -> None:
    facts, _ = train(tmp_path, epochs=8)
    losses = [epoch["loss"] for epoch in facts["epochs"]]
    assert len(losses) == 8 and losses[-1] < 0.7 * losses[0]
    case = Case(
        workload="mnist-mlp", framework="numpy", precision="fp64", weights=facts["weights"]["path"]
    )
    program = framework.lower(supervised.build(case), case)
    again = evaluate(program, supervised.samples(case, "test"), 10).to_dict("accuracy")
    assert again["correct"] == facts["test"]["correct"] and again["predictions"] == 25
    assert again["loss"] == pytest.approx(facts["test"]["loss"], rel=1e-5)


def test_train_writes_metadata_into_weights_file(tiny_mnist: Path, tmp_path: Path) -> None:
    facts, _ = train(tmp_path)
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(facts["weights"]["path"], "numpy") as file:
        metadata = file.metadata()
    assert (metadata["network"], metadata["set"], metadata["epochs"]) == ("mnist-mlp", "mnist", "2")
    assert json.loads(metadata["test"]) == facts["test"]
    assert supervised.digest(facts["weights"]["path"]) == facts["weights"]["sha256"]


def test_train_reports_every_epoch(tiny_mnist: Path, tmp_path: Path) -> None:
    facts, output = train(tmp_path)
    ends = [line for line in map(json.loads, output.splitlines()) if "test" in line]
    assert [line["epoch"] for line in ends] == [1, 2] and ends[1]["test"] == facts["test"]


def test_train_is_reproducible_by_seed(tiny_mnist: Path, tmp_path: Path) -> None:
    weights = []
    for number, seed in enumerate((1, 1, 2)):
        (folder := tmp_path / str(number)).mkdir()
        case = Case(
            workload="lenet5", framework="numpy", precision="fp64", batch_size=20, seed=seed
        )
        weights.append(load(train(folder, epochs=1, case=case)[0]["weights"]["path"]))
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not np.array_equal(weights[0]["dense1.bias"], weights[2]["dense1.bias"])


def test_train_without_dataset_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPTIME_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(NoSet, match="MNIST is missing"):
        train(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_train_refuses_batch_larger_than_dataset(tiny_mnist: Path, tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="The batch size 61 exceeds the 60 training samples"):
        train(
            tmp_path,
            case=Case(workload="mnist-mlp", framework="numpy", precision="fp64", batch_size=61),
        )


class Diverging:
    def feed(self, batch: dict[str, Any]) -> None: ...

    def step(self) -> float:
        return float("nan")

    def wait(self) -> None: ...


def test_training_ends_if_loss_is_not_finite() -> None:
    training = Training(Diverging(), CASE, 1, None)
    with pytest.raises(SteptimeError, match="the loss in step 2 of epoch 1 is not"):
        training.run_epoch(
            0,
            Samples(np.zeros((40, 1)), np.zeros(40)),
            Samples(np.zeros((1, 1)), np.zeros(1)),
            "accuracy",
        )


def test_shuffle_uses_each_sample_at_most_once() -> None:
    first, second = shuffle(10, 3, [0, 1]), shuffle(10, 3, [0, 2])
    assert first.shape == (3, 3) and len(set(first.ravel())) == 9
    assert not np.array_equal(first, second) and np.array_equal(first, shuffle(10, 3, [0, 1]))


def test_evaluate_includes_incomplete_last_batch() -> None:
    class Echo:
        def predict(self, batch: dict[str, Any]) -> Any:
            assert len(batch["input"]) == 4
            return np.eye(10)[batch["input"]]

    values = np.arange(10)
    score = evaluate(Echo(), Samples(values, values), 4)
    assert (score.correct, score.count) == (10, 10)
