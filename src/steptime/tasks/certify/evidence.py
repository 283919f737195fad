"""What a lowering computes, item by item, as arrays: gathered alike from the reference and from every framework."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.graph import Work
from steptime.tasks.certify.probes import dropout_probe, dropout_rates, rule_probe, without_dropout

Evidence = dict[str, dict[str, Any]]  # item -> name (of a weight, a step, a rate) -> array

RULE = "optimizer rule"
STEPS = 20  # of the trajectory, where nothing else is said
GENTLE = 0.01  # of the loss: what the first step may take off it, to first order
RULE_STEPS, DROPOUT_STEPS = 3, 16
SKIPS = 24  # loss scaling starts high and leaves out steps until nothing overflows


@dataclass(frozen=True)
class Lowering:
    """Makes programs of one framework, all as one case says."""

    framework: Any
    case: Case
    draw: int | None = (
        None  # for the reference alone: with the errors of a precision, drawn from this seed
    )
    precision: str = ""

    def __call__(self, work: Work, phase: str, *, wide: bool = False) -> Any:
        """`wide`: in fp32 or better."""
        images = len(work.graph.input.shape) == 3
        case = replace(self.case, phase=phase, layout=self.case.layout if images else "nchw")
        if self.draw is not None:
            precision = widened(self.precision) if wide else self.precision
            return self.framework.lower_rounded(work, case, precision=precision, draw=self.draw)
        return self.framework.lower(
            work, replace(case, precision=widened(case.precision)) if wide else case
        )


def widened(precision: str) -> str:
    return precision if precision == "fp64" else "fp32"


def gather(
    lower: Lowering, work: Work, *, covers: str, rate: float = 0.0, steps: int = STEPS
) -> Evidence:
    """`rate`: of the optimiser in the timed step; 0: the network's own. `steps`: of the trajectory."""
    found: Evidence = {
        "outputs": {"outputs": np.asarray(lower(work, "inference").predict(work.batch), np.float64)}
    }
    if covers == "training":
        optimizer = replace(work.optimizer, rate=rate or work.optimizer.rate)
        still = replace(work, graph=without_dropout(work.graph), optimizer=optimizer)
        found |= _training(lower(still, "training"), still, steps)
        found[RULE] = _rule(lower, work)
    return found


def gentle_rate(lower: Lowering, work: Work) -> float:
    """The network's own, unless it is too fast for so small a batch: a training that explodes depends on its rounding
    so much that 20 losses prove nothing. Adam's steps do not grow with the gradient; smaller ones would drown in the
    rounding of the weights."""
    if work.optimizer.algorithm == "adam":
        return work.optimizer.rate
    still = replace(work, graph=without_dropout(work.graph))
    loss, gradients = lower(still, "training").gradients(work.batch)
    fall = sum(float(np.square(gradient).sum()) for gradient in gradients.values())
    return min(work.optimizer.rate, GENTLE * loss / fall) if fall else work.optimizer.rate


def dropout_losses(lower: Lowering, work: Work, steps: int = DROPOUT_STEPS) -> dict[str, Any]:
    return {
        f"rate {rate:g}": _drawn(lower(dropout_probe(rate), "forward"), steps)
        for rate in dropout_rates(work.graph)
    }


def _training(program: Any, work: Work, count: int) -> Evidence:
    loss, gradients = program.gradients(work.batch)
    losses = _losses(program, work, count + SKIPS)
    first = next(losses, None)
    if first is None:
        raise SteptimeError(
            f"No step was taken: loss scaling left out {count + SKIPS} of them one after the other."
        )
    moved = _moves(program, work)
    steps = enumerate([first, *islice(losses, count - 1)], 1)
    return {
        "loss": {"loss": np.float64(loss)},
        "gradients": gradients,
        "optimizer step": moved,
        "trajectory": {f"step {number}": np.float64(value) for number, value in steps},
    }


def _losses(program: Any, work: Work, most: int) -> Iterator[float]:
    """The loss of each step that was really taken."""
    scaled = bool(program.facts().get("loss_scaling"))
    last: float | None = None
    for _ in range(most):
        loss = _taken(program)
        if scaled and last is None and _stands_still(program, work):
            program.load({**program.weights(), **_statistics(work)})
        elif not scaled or loss != last:
            last = loss
            yield loss


def _stands_still(program: Any, work: Work) -> bool:
    weights = program.weights()
    return all(
        np.array_equal(weights[n], work.weights[n])
        for n, w in work.graph.weights.items()
        if w.trainable
    )


def _statistics(work: Work) -> dict[str, Any]:
    """As they were: a step that was left out has moved them all the same."""
    return {
        name: work.weights[name]
        for name, weight in work.graph.weights.items()
        if not weight.trainable
    }


def _moves(program: Any, work: Work) -> dict[str, Any]:
    """How far each weight is from its start. A fixed one stays where it is."""
    weights = program.weights()
    return {
        name: np.asarray(weights[name], np.float64) - work.weights[name]
        for name in work.graph.weights
    }


def _rule(lower: Lowering, work: Work) -> dict[str, Any]:
    """In fp32 whatever the precision: that is what weights are kept in, and fp16 has no room for such gradients."""
    probe = rule_probe(work.optimizer)
    program = lower(probe, "training", wide=True)
    for _ in range(RULE_STEPS):
        program.step()
    program.wait()
    return _moves(program, probe)


def _drawn(program: Any, steps: int) -> Any:
    return np.array([_taken(program) for _ in range(steps)])


def _taken(program: Any) -> float:
    """One step and its loss."""
    loss = program.step()
    program.wait()
    return float(loss.item() if hasattr(loss, "item") else loss)
