from __future__ import annotations

import math
from typing import Any

import pytest

from steptime.core.accuracy import (
    COUNTS,
    ERRORS,
    explain_missing_accuracy,
    is_low,
)
from steptime.core.case import CHOICES


def complete(**changed: Any) -> dict[str, Any]:
    numbers = {name: 1.0 for name in (*COUNTS, *ERRORS)} | {
        "samples": 8,
        "positions": 8,
        "broken_positions": 0,
    }
    return {
        "accuracy": {"reference": "fp32", "data": "synthetic", "task": None, **numbers, **changed}
    }


def test_is_low_is_false_for_two_precisions() -> None:
    assert [word for word in CHOICES["precision"] if not is_low(word)] == ["fp32", "fp64"]


def test_explain_missing_accuracy_accepts_a_complete_part() -> None:
    assert explain_missing_accuracy("int8", complete()) == ""


def test_explain_missing_accuracy_accepts_full_precision() -> None:
    assert explain_missing_accuracy("fp32", {}) == ""


def test_explain_missing_accuracy_refuses_low_precision_without_it() -> None:
    assert (
        explain_missing_accuracy("bf16", {})
        == "A result in bf16 needs its accuracy part, and there is none."
    )


@pytest.mark.parametrize("name", [*COUNTS, *ERRORS, "reference", "data", "task"])
def test_explain_missing_accuracy_names_each_missing_number(name: str) -> None:
    found = complete()
    del found["accuracy"][name]
    assert name in explain_missing_accuracy("fp16", found)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "0.1", True])
def test_explain_missing_accuracy_refuses_what_is_no_number(value: object) -> None:
    assert "kl_divergence" in explain_missing_accuracy("fp8", complete(kl_divergence=value))


def test_explain_missing_accuracy_allows_null_if_nothing_is_finite() -> None:
    broken = dict.fromkeys(ERRORS)
    assert explain_missing_accuracy("fp16", complete(broken_positions=8, **broken)) == ""
    assert explain_missing_accuracy("fp16", complete(broken_positions=7, **broken)) != ""
