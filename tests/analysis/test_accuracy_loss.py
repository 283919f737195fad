"""The sentence on what a lower precision costs."""

from __future__ import annotations

from typing import Any

from factories import ACCURACY, make_record
from steptime.analysis.accuracy_loss import loss_sentence, measured_loss


def sentence(a: str, b: str, **loss: Any) -> str:
    findings = {"accuracy": ACCURACY | loss}
    return loss_sentence(
        make_record(1, precision=a).attempts,
        make_record(2, precision=b, findings=findings).attempts,
    )


def test_loss_sentence_is_empty_for_one_precision() -> None:
    assert sentence("fp32", "fp32") == sentence("int8", "int8") == ""


def test_loss_sentence_has_the_agreement_and_its_interval() -> None:
    assert sentence("fp32", "int8") == (
        "int8's accuracy loss: top-1 agreement 98.7 % (97.9 … 99.2) with fp32, "
        "largest logit error 6.8 % of rms (1,250 samples, synthetic)"
    )


def test_loss_sentence_has_the_change_of_the_task() -> None:
    task = {"metric": "top-1 accuracy", "before": 0.91, "after": 0.9042}
    assert "top-1 accuracy 91.00 % → 90.42 %" in sentence("fp32", "int8", task=task)


def test_loss_sentence_never_rounds_up_to_all() -> None:
    assert "agreement 99.990 %" in sentence("fp32", "int8", top1_agreement=0.9999)


def test_loss_sentence_counts_broken_outputs() -> None:
    text = sentence("fp32", "fp8", broken_positions=7, largest_relative_error=None)
    assert "7 outputs not finite" in text


def test_loss_sentence_of_an_unknown_loss_says_so() -> None:
    a, b = make_record(1).attempts, make_record(2, precision="bf16").attempts
    assert loss_sentence(a, b).startswith("bf16's accuracy loss unknown: ")
    assert loss_sentence(b, a) == loss_sentence(a, b) and measured_loss(b) is None


def test_loss_sentence_of_two_low_precisions_has_both() -> None:
    text = sentence("bf16", "int8")
    assert "bf16's accuracy loss unknown" in text and "int8's accuracy loss: top-1" in text


def test_loss_sentence_of_full_precisions_is_unknown() -> None:
    assert sentence("fp32", "fp64") == "accuracy loss unknown: fp32 was not compared with fp64"
