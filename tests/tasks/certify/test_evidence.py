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
    RULE,
    STEPS,
    Lowering,
    dropout_losses,
    gather_evidence,
    gentle_rate,
    widen_precision,
)

EXACT = Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4)


def network(net: Net) -> Tensor:
    return net.dense(net.dropout(net.relu(net.batch_norm(net.dense(net.input(6), 8))), 0.5), 4)


@pytest.fixture
def work(bench: Callable[..., Any]) -> Work:
    bench_work: Work = bench(network).work
    return bench_work


def test_gather_evidence_of_training_has_every_item_and_weight(work: Work) -> None:
    evidence = gather_evidence(Lowering(reference, EXACT), work, covers="training")
    assert list(evidence) == ["outputs", "loss", "gradients", "optimizer step", "trajectory", RULE]
    assert evidence["gradients"].keys() == {
        name for name, weight in work.graph.weights.items() if weight.trainable
    }
    assert evidence["optimizer step"].keys() == work.graph.weights.keys()
    assert len(evidence["trajectory"]) == STEPS


def test_gather_evidence_of_inference_has_outputs_only(work: Work) -> None:
    assert list(gather_evidence(Lowering(reference, EXACT), work, covers="inference")) == [
        "outputs"
    ]


def test_trajectory_is_of_timed_steps_without_dropout(work: Work) -> None:
    evidence = gather_evidence(Lowering(reference, EXACT), work, covers="training")
    assert evidence["trajectory"]["step 1"] == evidence["loss"]["loss"]
    assert evidence["trajectory"]["step 20"] < evidence["loss"]["loss"]


def test_gentle_rate_slows_a_rate_too_fast_for_the_batch(work: Work) -> None:
    lower, fast = Lowering(reference, EXACT), replace(work, optimizer=sgd(1e3))
    assert gentle_rate(lower, replace(work, optimizer=sgd(1e-9))) == 1e-9
    losses = gather_evidence(lower, fast, covers="training", rate=gentle_rate(lower, fast))[
        "trajectory"
    ]
    assert 0.98 < losses["step 2"] / losses["step 1"] < 1.0


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


def test_gather_evidence_ignores_steps_skipped_by_loss_scaling(work: Work) -> None:
    class Framework:
        def lower(self, work: Work, case: Case) -> Any:
            program = reference.lower(work, case)
            return (
                Skipping(program, 3)
                if "batch_norm1.weight" in work.weights and case.phase == "training"
                else program
            )

    plain = gather_evidence(Lowering(reference, EXACT), work, covers="training")
    scaled = gather_evidence(Lowering(Framework(), EXACT), work, covers="training")
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
