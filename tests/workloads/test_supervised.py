from __future__ import annotations

import numpy as np

from steptime.core.case import Case
from steptime.workloads import supervised


def test_work_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    first, again, other = (supervised.build(Case(workload="lenet5", seed=seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(first.weights[name], again.weights[name]) for name in first.weights)
    assert np.array_equal(first.batch["input"], again.batch["input"])
    assert not np.array_equal(first.batch["input"], other.batch["input"])


def test_the_optimiser_is_the_authors_own_unless_another_is_named() -> None:
    assert supervised.build(Case(workload="resnet50", batch_size=1)).optimizer.kind == "momentum"
    assert supervised.build(Case(workload="resnet50", batch_size=1, optimizer="adam")).optimizer.kind == "adam"


def test_training_does_more_arithmetic_than_inference() -> None:
    training, inference = (supervised.describe(Case(workload="lenet5", phase=p)) for p in ("training", "inference"))
    assert training["flops_per_step"] > 2 * inference["flops_per_step"]


def test_a_language_model_counts_tokens() -> None:
    told = supervised.describe(Case(workload="ptb-lstm-small", batch_size=20))
    assert (told["unit"], told["units_per_step"]) == ("tokens", 20 * 20)
