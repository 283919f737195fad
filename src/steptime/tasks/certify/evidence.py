"""What a lowering computes, as arrays by item: gathered alike from reference and frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol, cast

import numpy as np

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.program import Framework, Program
from steptime.graph import Work
from steptime.tasks.certify.probes import dropout_probe, dropout_rates, rule_probe, without_dropout

# item -> name (of a weight, a step, a rate) -> array
Evidence = dict[str, dict[str, Any]]

RULE = "optimizer rule"
# Default length of the trajectory.
STEPS = 20
# Share of the loss that the first step may remove, to first order.
GENTLE_FALL = 0.01
RULE_STEPS = 3
DROPOUT_STEPS = 16
# Loss scaling starts high and skips steps until nothing overflows.
MOST_SKIPS = 24


class RoundingFramework(Protocol):
    """The reference framework can compute with the rounding errors of a precision."""

    def lower_rounded(self, work: Work, case: Case, *, precision: str, draw: int) -> Program: ...


@dataclass(frozen=True)
class Lowering:
    """Makes programs of one framework for one case."""

    framework: Framework
    case: Case
    # Only for the reference: compute with rounding errors of `precision`, drawn from this seed.
    draw: int | None = None
    precision: str = ""

    def __call__(self, work: Work, phase: str, *, wide: bool = False) -> Program:
        """`wide`: in fp32 or better."""
        is_image_network = len(work.graph.input.shape) == 3
        case = replace(self.case, phase=phase)
        if not is_image_network:
            case = replace(case, layout="nchw")
        if self.draw is not None:
            precision = widen_precision(self.precision) if wide else self.precision
            framework = cast(RoundingFramework, self.framework)
            return framework.lower_rounded(work, case, precision=precision, draw=self.draw)
        if wide:
            case = replace(case, precision=widen_precision(case.precision))
        return self.framework.lower(work, case)


def widen_precision(precision: str) -> str:
    return precision if precision == "fp64" else "fp32"


def gather_evidence(
    lower: Lowering, work: Work, *, covers: str, rate: float = 0.0, steps: int = STEPS
) -> Evidence:
    """`rate`: learning rate, 0 for the network's own. `steps`: length of the trajectory."""
    outputs = lower(work, "inference").predict(work.batch)
    evidence: Evidence = {"outputs": {"outputs": np.asarray(outputs, np.float64)}}
    if covers == "training":
        optimizer = replace(work.optimizer, rate=rate or work.optimizer.rate)
        still = replace(work, graph=without_dropout(work.graph), optimizer=optimizer)
        evidence |= _gather_training(lower(still, "training"), still, steps)
        evidence[RULE] = _gather_rule(lower, work)
    return evidence


def gentle_rate(lower: Lowering, work: Work) -> float:
    """The network's own learning rate, or less if it is too fast for such a small batch.

    A training that explodes depends so much on rounding that 20 losses prove nothing. Adam
    keeps its rate: its steps do not grow with the gradient, and smaller ones would drown in the
    rounding of the weights."""
    own_rate = work.optimizer.rate
    if work.optimizer.algorithm == "adam":
        return own_rate
    still = replace(work, graph=without_dropout(work.graph))
    loss, gradients = lower(still, "training").gradients(work.batch)
    fall = sum(float(np.square(gradient).sum()) for gradient in gradients.values())
    return min(own_rate, GENTLE_FALL * loss / fall) if fall else own_rate


def dropout_losses(lower: Lowering, work: Work, steps: int = DROPOUT_STEPS) -> dict[str, Any]:
    losses = {}
    for rate in dropout_rates(work.graph):
        program = lower(dropout_probe(rate), "forward")
        losses[f"rate {rate:g}"] = np.array([_step_loss(program) for _ in range(steps)])
    return losses


def _gather_training(program: Program, work: Work, count: int) -> Evidence:
    loss, gradients = program.gradients(work.batch)
    losses = _taken_step_losses(program, work, count + MOST_SKIPS)
    first = next(losses, None)
    if first is None:
        raise SteptimeError(f"Loss scaling skipped all of {count + MOST_SKIPS} steps.")
    first_step = _weight_changes(program, work)
    trajectory = {}
    for number, value in enumerate([first, *islice(losses, count - 1)], 1):
        trajectory[f"step {number}"] = np.float64(value)
    return {
        "loss": {"loss": np.float64(loss)},
        "gradients": gradients,
        "optimizer step": first_step,
        "trajectory": trajectory,
    }


def _taken_step_losses(program: Program, work: Work, most: int) -> Iterator[float]:
    """The loss of each step that loss scaling did not skip."""
    is_scaled = bool(program.facts().get("loss_scaling"))
    last: float | None = None
    for _ in range(most):
        loss = _step_loss(program)
        if is_scaled and last is None and _is_unchanged(program, work):
            # A skipped step has still moved the running statistics: put them back.
            program.load({**program.weights(), **_initial_statistics(work)})
        elif not is_scaled or loss != last:
            last = loss
            yield loss


def _is_unchanged(program: Program, work: Work) -> bool:
    weights = program.weights()
    for name, weight in work.graph.weights.items():
        if weight.trainable and not np.array_equal(weights[name], work.weights[name]):
            return False
    return True


def _initial_statistics(work: Work) -> dict[str, Any]:
    statistics = {}
    for name, weight in work.graph.weights.items():
        if not weight.trainable:
            statistics[name] = work.weights[name]
    return statistics


def _weight_changes(program: Program, work: Work) -> dict[str, Any]:
    """The difference of each weight from its initial value; 0 for a weight that is fixed."""
    weights = program.weights()
    changes = {}
    for name in work.graph.weights:
        changes[name] = np.asarray(weights[name], np.float64) - work.weights[name]
    return changes


def _gather_rule(lower: Lowering, work: Work) -> dict[str, Any]:
    """In fp32 for all lower precisions: weights are stored in fp32, and such small gradients
    underflow in fp16."""
    probe = rule_probe(work.optimizer)
    program = lower(probe, "training", wide=True)
    for _ in range(RULE_STEPS):
        program.step()
    program.wait()
    return _weight_changes(program, probe)


def _step_loss(program: Program) -> float:
    loss = program.step()
    program.wait()
    return float(loss.item() if hasattr(loss, "item") else loss)
