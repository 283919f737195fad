"""What is gathered from a program, also if loss scaling skips steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Tensor, Work, sgd
from steptime.tasks.certify.evidence import (
    DIGITS,
    LARGE_GRADIENTS,
    RULE,
    STORED,
    Evidence,
    Lowering,
    dropout_losses,
    gather_evidence,
    gentle_rate,
    widen_precision,
)
from steptime.tasks.certify.studies import Study

STEPS = 20

EXACT = Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4)


def network(net: Net) -> Tensor:
    return net.dense(net.dropout(net.relu(net.batch_norm(net.dense(net.input(6), 8))), 0.5), 4)


@pytest.fixture
def study(bench: Callable[..., Any]) -> Study:
    bench_study: Study = bench(network).study
    return bench_study


@pytest.fixture
def work(study: Study) -> Work:
    return study.work


def gather(study: Study, framework: Any = reference, **options: Any) -> Evidence:
    options = {"covers": "training", "steps": STEPS, **options}
    return gather_evidence(Lowering(framework, EXACT), study, **options)


def test_gather_evidence_of_training_has_every_item_and_weight(study: Study) -> None:
    evidence = gather(study)
    assert set(evidence) == {
        "outputs", "loss", "gradients", STORED, "optimizer step", "statistics", "trajectory",
        "steps from host", "forward", RULE, LARGE_GRADIENTS, DIGITS,
    }  # fmt: skip
    trainable = {name for name, weight in study.work.graph.weights.items() if weight.trainable}
    assert evidence["gradients"].keys() == evidence["optimizer step"].keys() == trainable
    assert "batch_norm1.running_mean" in evidence["statistics"]
    assert "batch_norm1.running_mean after forward" in evidence["statistics"]
    assert len(evidence["trajectory"]) == STEPS


def test_gather_evidence_of_inference_has_outputs_only(study: Study) -> None:
    assert list(gather(study, covers="inference")) == ["outputs"]


def test_gather_evidence_of_a_slow_network_has_no_training(study: Study) -> None:
    whole = replace(study, is_complete=False)
    assert list(gather(whole)) == ["outputs", "loss", "gradients"]
    assert list(gather(replace(whole, has_gradients=False))) == ["outputs"]


def test_gather_evidence_tries_two_batches_host_memory_and_one_sample(study: Study) -> None:
    outputs = gather(study, covers="inference")["outputs"]
    np.testing.assert_array_equal(outputs["outputs"], outputs["from host"])
    np.testing.assert_array_equal(outputs["outputs"], outputs["predict"])
    np.testing.assert_allclose(outputs["one sample"], outputs["outputs"][:1], rtol=1e-12)
    assert not np.allclose(outputs["outputs"], outputs["second batch"])


def test_trajectory_takes_two_batches_in_turn_without_dropout(study: Study) -> None:
    evidence = gather(study)
    losses = evidence["trajectory"]
    assert losses["step 1"] == evidence["loss"]["loss"] == evidence["forward"]["first batch"]
    assert losses["step 19"] < losses["step 1"] and losses["step 20"] < losses["step 2"]
    assert losses["step 2"] != pytest.approx(losses["step 1"], rel=1e-3)


def test_gentle_rate_slows_a_rate_too_fast_for_the_batch(study: Study) -> None:
    lower, work = Lowering(reference, EXACT), study.work
    assert gentle_rate(lower, replace(work, optimizer=sgd(1e-9))) == 1e-9
    fast = replace(study, work=replace(work, optimizer=sgd(1e3)))
    losses = gather(fast, rate=gentle_rate(lower, fast.work))["trajectory"]
    # The third step has the first one's batch again.
    assert 0.96 < losses["step 3"] / losses["step 1"] < 1.0


def test_dropout_losses_exist_for_every_rate(work: Work) -> None:
    losses = dropout_losses(Lowering(reference, EXACT), work, 3)
    assert list(losses) == ["rate 0.5"] and len(set(losses["rate 0.5"])) == 3


class Skipping:
    """Loss scaling that starts too high: the first steps move statistics and nothing else."""

    def __init__(self, program: Any, skips: int) -> None:
        self.program, self.skips = program, skips

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def facts(self) -> dict[str, Any]:
        return {"loss_scaling": True}

    def step(self) -> float:
        if not self.skips:
            return float(self.program.step())
        self.skips -= 1
        before = self.program.weights()
        loss, _ = self.program.gradients(self.program.batch)
        self.program.load(
            {**before, "batch_norm1.running_mean": before["batch_norm1.running_mean"] + 1}
        )
        return float(loss)


def test_gather_evidence_ignores_steps_skipped_by_loss_scaling(study: Study) -> None:
    class Framework:
        def lower(self, work: Work, case: Case) -> Any:
            program = reference.lower(work, case)
            return (
                Skipping(program, 3)
                if "batch_norm1.weight" in work.weights and case.phase == "training"
                else program
            )

    plain = gather(study)
    scaled = gather(study, Framework())
    for item in ("optimizer step", "trajectory"):
        for name, value in plain[item].items():
            np.testing.assert_allclose(
                scaled[item][name], value, rtol=1e-12, atol=1e-15, err_msg=name
            )


def test_widen_precision_is_fp32_or_better() -> None:
    assert [widen_precision(precision) for precision in ("fp64", "fp32", "bf16", "fp8")] == [
        "fp64",
        "fp32",
        "fp32",
        "fp32",
    ]
