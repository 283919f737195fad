from __future__ import annotations

import math

import numpy as np
import pytest

from steptime.engine.task_metric import (
    mcnemar,
    newcombe,
    perplexity,
    student_95,
    task_metric,
    task_value,
    wilson,
)


def test_wilson_matches_published_interval() -> None:
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)  # Newcombe 1998, table I
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


def test_newcombe_matches_published_interval() -> None:
    # Newcombe 1998, paired data, table III: a = 36, b = 12, c = 2, d = 0.
    low, high = newcombe(50, before=38, after=48, lost=2)
    assert (low, high) == pytest.approx((0.0569, 0.3404), abs=1e-4)


def test_newcombe_is_narrow_for_equal_answers() -> None:
    low, high = newcombe(1000, before=900, after=900, lost=0)
    assert low < 0 < high and high - low < 0.01


@pytest.mark.slow
def test_mcnemar_is_exact() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(1, 9) == pytest.approx(2 * 11 / 1024)
    assert mcnemar(4000, 4000) == 1


@pytest.mark.parametrize(
    ("freedom", "expected"), [(5, 2.5706), (10, 2.2281), (30, 2.0423), (1000, 1.9623)]
)
def test_student_95_matches_tables(freedom: int, expected: float) -> None:
    assert student_95(freedom) == pytest.approx(expected, rel=1e-3)


def test_task_metric_of_classes_is_accuracy() -> None:
    targets = np.array([0, 1, 2, 2])
    before, after = np.eye(3)[[0, 1, 2, 0]], np.eye(3)[[0, 2, 2, 2]]
    metric = task_metric([targets], [before], [after])
    assert (metric["metric"], metric["before"], metric["after"]) == ("top-1 accuracy", 0.75, 0.75)
    assert (metric["lost"], metric["won"], metric["change"]) == (1, 1, 0)


def test_task_metric_counts_nonfinite_answer_as_wrong() -> None:
    before = np.eye(2)
    after = np.where(before == 1, np.nan, before)
    assert task_metric([np.array([0, 1])], [before], [after])["after"] == 0


def test_task_metric_of_sequences_is_perplexity() -> None:
    logits = np.zeros((6, 4, 10), np.float32)
    metric = task_metric([np.zeros((6, 4), int)], [logits], [logits])
    assert (metric["metric"], metric["before"]) == ("perplexity", pytest.approx(10))
    assert metric["change_interval"] == [0, 0]


def test_perplexity_change_has_narrower_interval() -> None:
    losses = np.random.default_rng(0).normal(4, 0.5, 50)
    metric = perplexity(losses, losses + 0.01)
    assert metric["change"] == pytest.approx(math.expm1(0.01))
    assert np.ptp(metric["change_interval"]) < 1e-6 < np.ptp(metric["before_interval"])


def test_perplexity_is_none_with_a_broken_sequence() -> None:
    metric = perplexity(np.ones(3), np.array([1.0, np.nan, 1.0]))
    assert (
        metric["before"] == pytest.approx(math.e)
        and metric["after"] is None
        and metric["change_interval"] is None
    )


def test_perplexity_of_one_sequence_has_no_interval() -> None:
    assert perplexity(np.ones(1), np.ones(1))["before_interval"] is None


def test_task_value_has_wilson_s_interval() -> None:
    logits = np.eye(4)[[0, 1, 2, 0]]
    metric = task_value([np.arange(4)], [logits])
    assert (metric["metric"], metric["samples"], metric["value"]) == ("top-1 accuracy", 4, 0.75)
    assert metric["interval"] == pytest.approx([0.3006, 0.9544], abs=1e-4)


def test_task_value_of_sequences_is_perplexity() -> None:
    metric = task_value([np.zeros((6, 4), int)], [np.zeros((6, 4, 5))])
    assert metric["metric"] == "perplexity" and metric["value"] == pytest.approx(5)
