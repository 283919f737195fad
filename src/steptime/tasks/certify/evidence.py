"""What a lowering computes, as arrays by item: gathered alike from reference and frameworks.

Outputs, losses and new weights come from `step()`, because that is what is timed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, Protocol, cast

import numpy as np

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.program import Framework, Program
from steptime.graph import Work
from steptime.graph.batches import Batch
from steptime.tasks.certify.probes import (
    dropout_probe,
    dropout_rates,
    first_sample,
    rule_probe,
    statistics_names,
    without_dropout,
)
from steptime.tasks.certify.studies import Study

# item -> name (of a weight, a step, a rate) -> array
Evidence = dict[str, dict[str, Any]]

RULE = "optimizer rule"
LARGE_GRADIENTS = "large gradients"
DIGITS = "lost digits"
STORED = "stored weights"
# Share of the loss that the first step may remove, to first order.
GENTLE_FALL = 0.01
RULE_STEPS = 3
# Times the rule probe's gradients: their norm is then far above what a clipping would allow.
LARGE = 1e4
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

    def __call__(
        self, work: Work, phase: str, *, wide: bool = False, data: str = "device"
    ) -> Program:
        """`wide`: in fp32 or better."""
        is_image_network = len(work.graph.input.shape) == 3
        case = replace(self.case, phase=phase, data=data, batch_size=len(work.batch["input"]))
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
    lower: Lowering, study: Study, *, covers: str, rate: float = 0.0, steps: int
) -> Evidence:
    """`rate`: learning rate, 0 for the network's own. `steps`: length of the trajectory."""
    work = study.work
    evidence: Evidence = {"outputs": _gather_outputs(lower, study)}
    if covers != "training" or not study.has_gradients:
        return evidence
    optimizer = replace(work.optimizer, rate=rate or work.optimizer.rate)
    still = replace(work, graph=without_dropout(work.graph), optimizer=optimizer)
    program = lower(still, "training")
    loss, gradients = program.gradients(work.batch)
    evidence |= {"loss": {"loss": np.float64(loss)}, "gradients": gradients}
    if study.is_complete:
        evidence[STORED] = program.weights()
        evidence |= _gather_training(program, still, study.second, steps)
        evidence["steps from host"] = _gather_steps_from_host(lower, still, study.second)
        _add_forward(evidence, lower, still, study)
        evidence[DIGITS] = _lost_digits(program, evidence)
        lacks_scaling = lower.case.precision == "fp16" and not program.facts().get("loss_scaling")
        evidence[DIGITS]["small gradients, for lack of loss scaling"] = np.float64(lacks_scaling)
        _add_rule(evidence, lower, work)
    return evidence


def gentle_rate(lower: Lowering, work: Work) -> float:
    """The network's own learning rate, or less if it is too fast for such a small batch.

    A training that explodes depends so much on rounding that its losses prove nothing. Adam
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
        losses[f"rate {rate:g}"] = np.array([step_result(program) for _ in range(steps)])
    return losses


def step_result(program: Program) -> Any:
    """What the timed function returns: outputs, or a loss."""
    result = program.step()
    program.wait()
    return np.array(program.to_array(result), np.float64)


def _gather_outputs(lower: Lowering, study: Study) -> dict[str, Any]:
    """The step comes first: it must not find what another function has left."""
    work = study.work
    program = lower(work, "inference")
    outputs = {"outputs": step_result(program)}
    program.feed(study.second)
    outputs["second batch"] = step_result(program)
    if study.is_complete:
        # The batch stays: a step that returned what it had kept would not notice.
        program.load(study.other_weights)
        outputs["other weights"] = step_result(program)
        program.load(work.weights)
        outputs["predict"] = np.asarray(program.predict(work.batch), np.float64)
        program = lower(work, "inference", data="host")
        outputs["from host"] = step_result(program)
        program.feed(study.second)
        outputs["second batch from host"] = step_result(program)
        # A framework may compute a single sample in another way.
        outputs["one sample"] = step_result(lower(first_sample(work), "inference"))
    return outputs


def _gather_training(program: Program, work: Work, second: Batch, count: int) -> Evidence:
    """Each step takes the other batch, so that no step can repeat what one before has computed."""
    losses = _taken_step_losses(program, work, second, count + MOST_SKIPS)
    first = next(losses, None)
    if first is None:
        raise SteptimeError(f"Loss scaling skipped all of {count + MOST_SKIPS} steps.")
    changes = _weight_changes(program, work)
    statistics = {name: changes.pop(name) for name in statistics_names(work.graph)}
    trajectory = {}
    for number, value in enumerate([first, *islice(losses, count - 1)], 1):
        trajectory[f"step {number}"] = value
    evidence: Evidence = {"optimizer step": changes, "trajectory": trajectory}
    if statistics:
        evidence["statistics"] = statistics
    return evidence


def _gather_steps_from_host(lower: Lowering, work: Work, second: Batch) -> dict[str, Any]:
    program = lower(work, "training", data="host")
    losses = _taken_step_losses(program, work, second, 2 + MOST_SKIPS)
    return {f"step {number}": value for number, value in enumerate(islice(losses, 2), 1)}


def _lost_digits(program: Program, evidence: Evidence) -> dict[str, Any]:
    """By name, 1 if what must be fp32 or better has no more digits than bf16, else 0.

    A master weight that is rounded after each step does not move for long, but the first steps
    differ by less than the gradients of a low precision do."""
    arrays = program.weights()
    for item in ("trajectory", "forward"):
        arrays[f"losses ({item})"] = np.array(list(evidence[item].values()))
    lost = {}
    for name, array in arrays.items():
        # The upper half of an fp32 number is a bf16 number.
        bits = np.asarray(array, np.float32).reshape(-1).view(np.uint32)
        is_short = (bits & 0xFFFF == 0).mean() > 0.5
        lost[name] = np.float64(is_short)
    return lost


def _add_forward(evidence: Evidence, lower: Lowering, work: Work, study: Study) -> None:
    program = lower(work, "forward")
    losses = {"first batch": step_result(program)}
    changes = _weight_changes(program, work)
    program.feed(study.second)
    losses["second batch"] = step_result(program)
    program.load(study.other_weights)
    losses["other weights"] = step_result(program)
    evidence["forward"] = losses
    for name in statistics_names(work.graph):
        evidence["statistics"][f"{name} after forward"] = changes[name]


def _taken_step_losses(program: Program, work: Work, second: Batch, most: int) -> Iterator[Any]:
    """The loss of each step that loss scaling did not skip, on the two batches in turn."""
    is_scaled = bool(program.facts().get("loss_scaling"))
    next_batches = cycle([second, work.batch])
    for _ in range(most):
        before = program.weights() if is_scaled else {}
        loss = step_result(program)
        if is_scaled and _is_skipped(program, work, before):
            # It has still moved the running statistics: put them back.
            program.load(before)
            continue
        yield loss
        program.feed(next(next_batches))


def _is_skipped(program: Program, work: Work, before: dict[str, Any]) -> bool:
    after = program.weights()
    for name, weight in work.graph.weights.items():
        if weight.trainable and not np.array_equal(after[name], before[name]):
            return False
    return True


def _weight_changes(program: Program, work: Work) -> dict[str, Any]:
    """The difference of each weight from its initial value; 0 for a weight that is fixed."""
    weights = program.weights()
    changes = {}
    for name in work.graph.weights:
        changes[name] = np.asarray(weights[name], np.float64) - work.weights[name]
    return changes


def _add_rule(evidence: Evidence, lower: Lowering, work: Work) -> None:
    """In fp32 for all lower precisions: weights are stored in fp32, and such small gradients
    underflow in fp16."""
    evidence[RULE] = _changes_after(lower, rule_probe(work.optimizer), RULE_STEPS)
    # One step, because such large ones leave nothing to learn.
    evidence[LARGE_GRADIENTS] = _changes_after(lower, rule_probe(work.optimizer, LARGE), 1)


def _changes_after(lower: Lowering, probe: Work, steps: int) -> dict[str, Any]:
    program = lower(probe, "training", wide=True)
    for _ in range(steps):
        program.step()
    program.wait()
    return _weight_changes(program, probe)
