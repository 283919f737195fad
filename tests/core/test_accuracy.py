from __future__ import annotations

import math
from typing import Any

import pytest

from steptime.core.accuracy import COUNTS, ERRORS, explain_missing_accuracy, is_low
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


def test_all_but_two_precisions_owe_their_price() -> None:
    assert [word for word in CHOICES["precision"] if not is_low(word)] == ["fp32", "fp64"]


def test_a_whole_accuracy_part_lacks_nothing() -> None:
    assert explain_missing_accuracy("int8", complete()) == ""


def test_full_precision_needs_none() -> None:
    assert explain_missing_accuracy("fp32", {}) == ""


def test_a_low_precision_without_any_is_told() -> None:
    assert (
        explain_missing_accuracy("bf16", {})
        == "A result in bf16 needs its accuracy part, and there is none."
    )


@pytest.mark.parametrize("name", [*COUNTS, *ERRORS, "reference", "data", "task"])
def test_each_missing_part_is_named(name: str) -> None:
    found = complete()
    del found["accuracy"][name]
    assert name in explain_missing_accuracy("fp16", found)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "0.1", True])
def test_what_is_no_number_is_missing(value: object) -> None:
    assert "kl_divergence" in explain_missing_accuracy("fp8", complete(kl_divergence=value))


def test_errors_may_be_absent_where_nothing_came_out_finite() -> None:
    broken = dict.fromkeys(ERRORS)
    assert explain_missing_accuracy("fp16", complete(broken_positions=8, **broken)) == ""
    assert explain_missing_accuracy("fp16", complete(broken_positions=7, **broken)) != ""
