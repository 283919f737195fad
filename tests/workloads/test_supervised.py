from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steptime import networks
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.graph.weights import initial_weights, save
from steptime.workloads import supervised


def test_build_is_reproducible_by_seed() -> None:
    first, again, other = (
        supervised.build(Case(workload="lenet5", seed=seed)) for seed in (1, 1, 2)
    )
    assert all(np.array_equal(first.weights[name], again.weights[name]) for name in first.weights)
    assert np.array_equal(first.batch["input"], again.batch["input"])
    assert not np.array_equal(first.batch["input"], other.batch["input"])


def test_build_uses_own_optimizer_by_default() -> None:
    assert (
        supervised.build(Case(workload="resnet50", batch_size=1)).optimizer.algorithm == "momentum"
    )
    assert (
        supervised.build(
            Case(workload="resnet50", batch_size=1, optimizer="adam")
        ).optimizer.algorithm
        == "adam"
    )


def test_describe_counts_more_flops_for_training() -> None:
    training, inference = (
        supervised.describe(Case(workload="lenet5", phase=p)) for p in ("training", "inference")
    )
    assert training["flops_per_step"] > 2 * inference["flops_per_step"]


def test_describe_counts_tokens_of_language_model() -> None:
    facts = supervised.describe(Case(workload="ptb-lstm-small", batch_size=20))
    assert (facts["unit"], facts["units_per_step"]) == ("tokens", {"tokens": 20 * 20})


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    path = tmp_path / "lenet5.safetensors"
    save(path, dict(initial_weights(networks.load("lenet5").graph, 7)))
    return path


def test_build_loads_weights_from_file(trained: Path) -> None:
    initial, loaded = (
        supervised.build(Case(workload="lenet5", weights=path)) for path in ("", str(trained))
    )
    expected = supervised.build(Case(workload="lenet5", seed=7)).weights
    assert np.array_equal(loaded.weights["dense1.weight"], expected["dense1.weight"])
    assert not np.array_equal(loaded.weights["dense1.weight"], initial.weights["dense1.weight"])


def test_describe_names_weights_by_digest(trained: Path) -> None:
    facts = supervised.describe(Case(workload="lenet5", weights=str(trained)))
    assert facts["weights"] == supervised.digest(str(trained)) and len(facts["weights"]) == 64
    assert "weights" not in supervised.describe(Case(workload="lenet5"))


def test_build_refuses_weights_of_another_network(trained: Path) -> None:
    with pytest.raises(SteptimeError, match="mnist-mlp"):
        supervised.build(Case(workload="mnist-mlp", weights=str(trained)))


def test_build_explains_missing_weights() -> None:
    with pytest.raises(
        SteptimeError, match=r"The weights 'none.safetensors' cannot be read: No such file"
    ):
        supervised.describe(Case(workload="lenet5", weights="none.safetensors"))


def test_test_set_has_batches_of_the_case_s_size(tiny_mnist: Path) -> None:
    batches = supervised.test_set(Case(workload="lenet5", batch_size=10))
    assert batches is not None
    assert [len(batch["input"]) for batch in batches] == [10, 10, 5]


def test_test_set_is_none_without_dataset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEPTIME_DATA", "/nowhere")
    assert supervised.test_set(Case(workload="lenet5")) is None
    assert supervised.test_set(Case(workload="resnet50")) is None


def test_test_set_raises_for_damaged_dataset(tiny_mnist: Path) -> None:
    (tiny_mnist / "MNIST" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"damaged")
    with pytest.raises(SteptimeError, match="is not MNIST's t10k-labels"):
        supervised.test_set(Case(workload="lenet5"))


def test_data_set_lists_networks_that_have_one() -> None:
    with pytest.raises(SteptimeError, match=r"resnet50 names no dataset.*mnist-mlp"):
        supervised.samples(Case(workload="resnet50"), "train")


def test_calibration_is_for_int8_and_avoids_the_step_s_batch() -> None:
    case = Case(workload="lenet5", phase="inference", precision="int8", batch_size=8)
    work = supervised.build(case)
    assert sum(len(batch["input"]) for batch in work.calibration) == 256
    assert not any(
        np.array_equal(batch["input"], work.batch["input"]) for batch in work.calibration
    )
    assert supervised.build(Case(workload="lenet5")).calibration == ()


def test_calibration_uses_fewer_samples_for_large_networks() -> None:
    case = Case(workload="resnet50", phase="inference", precision="int8", batch_size=8)
    assert [len(batch["input"]) for batch in supervised.calibration(case)] == [8] * 4


@pytest.mark.parametrize("size", [3, 8, 64, 500])
def test_calibration_has_the_same_samples_for_every_batch_size(
    size: int, trained: Path, tiny_mnist: Path
) -> None:
    for weights in ("", str(trained)):
        case = Case(workload="lenet5", precision="int8", batch_size=1, weights=weights)
        alone = {batch["input"].tobytes() for batch in supervised.calibration(case)}
        batches = supervised.calibration(replace(case, batch_size=size))
        assert all(len(batch["input"]) == size for batch in batches)
        assert {image.tobytes() for batch in batches for image in batch["input"]} == alone


def test_calibration_of_trained_weights_uses_training_set(trained: Path, tiny_mnist: Path) -> None:
    case = Case(workload="lenet5", precision="int8", batch_size=10, weights=str(trained))
    first = next(iter(supervised.samples(case, "train").batches(10)))
    np.testing.assert_array_equal(supervised.calibration(case)[0]["input"], first["input"])


def test_build_gives_ranks_own_batches_and_equal_weights() -> None:
    case = Case(workload="lenet5", exchange="allreduce", devices=2)
    first, second = (supervised.build(case, rank=rank) for rank in (0, 1))
    assert not np.array_equal(first.batch["input"], second.batch["input"])
    assert all(
        np.array_equal(values, second.weights[name]) for name, values in first.weights.items()
    )


def test_describe_counts_work_of_all_ranks() -> None:
    alone, shared = (
        supervised.describe(Case(workload="lenet5", devices=4, exchange=e))
        for e in ("none", "allreduce")
    )
    assert shared["flops_per_step"] == 4 * alone["flops_per_step"]
    assert shared["units_per_step"] == {
        unit: 4 * count for unit, count in alone["units_per_step"].items()
    }


def test_digest_refuses_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SteptimeError, match="no ordinary file"):
        supervised.digest(str(tmp_path / "pipe"))
