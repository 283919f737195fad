"""The progress and the outcome of a training as text and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.core.format import digits, percent, rough_duration

if TYPE_CHECKING:
    from steptime.core.record import Attempt

Facts = dict[str, Any]


def batch_line(facts: Facts) -> str:
    return f"{_epoch(facts)}, {percent(facts['done'])}: loss {digits(facts['loss'])}"


def epoch_line(facts: Facts) -> str:
    loss = digits(facts["loss"])
    speed = f"{digits(facts['samples_per_second'])} samples/s"
    return f"{_epoch(facts)}: loss {loss}, test {_metric(facts['test'])}, {speed}"


def show(attempt: Attempt, save: Path) -> None:
    training = attempt.findings["training"]
    title = training["set"]["title"]
    output.echo(
        f"{attempt.network['name']} trained on {title} in {rough_duration(training['seconds'])}: "
        f"test {_metric(training['test'])}, 95 % interval."
    )
    workload = attempt.case.workload
    command = f"steptime run --workload {workload} --phase inference --set weights={save}"
    output.echo(f"Weights in {save}. To use them: {command}")


def to_document(attempt: Attempt) -> Facts:
    document = {
        "id": attempt.id,
        "case": attempt.case.to_dict(),
        "network": attempt.network,
        "software": attempt.software,
        **attempt.findings,
    }
    if attempt.failure:
        document["failure"] = vars(attempt.failure)
    return document


def _epoch(facts: Facts) -> str:
    return f"epoch {facts['epoch']} of {facts['epochs']}"


def _metric(test: Facts) -> str:
    if test["metric"] == "accuracy":
        value, low, high = (f"{100 * test[name]:.2f}" for name in ("value", "low", "high"))
        return f"accuracy {value} % ({low} … {high} %)"
    value, low, high = (digits(test[name]) for name in ("value", "low", "high"))
    return f"{test['metric']} {value} ({low} … {high})"
