"""The accuracy loss of a low precision as text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from steptime.cli.render import accuracy_loss

LOSS: dict[str, Any] = {
    "reference": "fp32, pytorch compiled",
    "data": "test set",
    "samples": 1000,
    "positions": 1000,
    "broken_positions": 0,
    "largest_logit_error": 0.0123,
    "mean_logit_error": 0.002,
    "reference_rms": 1.0,
    "largest_relative_error": 0.0123,
    "mean_relative_error": 0.002,
    "kl_divergence": 1.5e-4,
    "top1_agreement": 0.9996,
    "top1_agreement_interval": [0.99, 1.0],
    "task_absent": "",
    "task": {
        "metric": "top-1 accuracy",
        "samples": 1000,
        "before": 0.712,
        "after": 0.7105,
        "change": -0.0015,
        "change_interval": [-0.004, 0.001],
    },
}


def record(loss: dict[str, Any] | None, differs: bool = False, task: Any = None) -> Any:
    return SimpleNamespace(accuracy=loss, accuracy_differs=differs, task=task)


def test_columns_have_error_agreement_and_task() -> None:
    assert accuracy_loss.columns(record(LOSS)) == {
        "logit error": "1.2 % of rms",
        "top-1 agrees": "99.96 %",
        "task": "71.20 % → 71.05 %",
    }


def test_columns_are_empty_for_full_precision_without_a_task() -> None:
    assert set(accuracy_loss.columns(record(None)).values()) == {""}
    assert accuracy_loss.lines(record(None)) == {"task": ""}


TASK = {
    "metric": "top-1 accuracy",
    "samples": 10_000,
    "value": 0.712,
    "interval": [0.703, 0.7208],
}


def test_full_precision_has_its_accuracy_with_an_interval() -> None:
    assert accuracy_loss.columns(record(None, task=TASK))["task"] == "71.20 %"
    interval = "(70.30 % … 72.08 %, 95 %, 10,000 samples of the test set)"
    assert (
        accuracy_loss.lines(record(None, task=TASK))["task"] == f"top-1 accuracy 71.20 % {interval}"
    )


def test_full_precision_may_have_perplexity() -> None:
    task = {"metric": "perplexity", "samples": 50, "value": 41.2, "interval": None}
    assert accuracy_loss.columns(record(None, task=task))["task"] == "perplexity 41.2"
    lines = accuracy_loss.lines(record(None, task={**task, "interval": [40.0, 42.5]}))
    assert "perplexity 41.2 (40 … 42.5, 95 %, 50 samples" in lines["task"]


def test_lines_have_the_interval_of_the_change() -> None:
    lines = accuracy_loss.lines(record(LOSS))
    change = "change -0.15 points (-0.40 … +0.10, 95 % paired, 1,000 samples)"
    assert lines["task"].endswith(change)
    assert lines["largest logit error"] == "0.0123 (1.2 % of rms), mean 0.002 (0.2 %)"
    assert lines["KL divergence"] == "0.00015 nats per position"
    assert (
        "99.00 % … 100.00 %) with fp32, pytorch compiled, 1,000 samples, test set"
        in lines["top-1 agreement"]
    )


def test_lines_say_why_a_task_is_unknown() -> None:
    changed = {**LOSS, "task": None, "task_absent": "the weights are initial ones"}
    assert accuracy_loss.lines(record(changed))["task"] == "not known: the weights are initial ones"
    assert accuracy_loss.columns(record(changed))["task"] == ""


def test_change_of_perplexity_is_relative() -> None:
    task = {
        "metric": "perplexity",
        "samples": 50,
        "before": 41.2,
        "after": 41.9,
        "change": 0.017,
        "change_interval": [0.01, 0.02],
    }
    line = accuracy_loss.lines(record({**LOSS, "task": task}))["task"]
    change = "change +1.70 % (+1.00 … +2.00, 95 % paired, 50 samples)"
    assert line == f"perplexity 41.2 → 41.9, {change}"


def test_broken_outputs_are_reported() -> None:
    nothing = dict.fromkeys(
        ("largest_logit_error", "mean_logit_error", "kl_divergence", "largest_relative_error")
    )
    assert (
        accuracy_loss.columns(record({**LOSS, **nothing, "broken_positions": 1000}))["logit error"]
        == "nothing finite"
    )
    assert (
        "3 broken" in accuracy_loss.columns(record({**LOSS, "broken_positions": 3}))["logit error"]
    )
    assert (
        accuracy_loss.lines(record({**LOSS, **nothing, "broken_positions": 1000}))[
            "largest logit error"
        ]
        == "nothing finite"
    )


def test_processes_that_disagree_are_noted() -> None:
    assert "disagree" in accuracy_loss.lines(record(LOSS, differs=True))["accuracy note"]
