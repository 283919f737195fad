from __future__ import annotations

import numpy as np
import pytest

from steptime.engine.score import Score


def test_score_accuracy_counts_correct_answers_of_all_batches() -> None:
    score = Score()
    score.add(np.eye(4), np.array([0, 1, 2, 0]))
    score.add(np.eye(4)[:2], np.array([0, 0]))
    result = score.to_dict("accuracy")
    assert (result["correct"], result["predictions"], result["value"]) == (4, 6, 4 / 6)
    assert 0.29 < result["low"] < 0.31 and 0.90 < result["high"] < 0.91  # Wilson, 4 of 6


def test_score_perplexity_is_number_of_equally_likely_words() -> None:
    score = Score()
    score.add(np.zeros((3, 5, 8)), np.zeros((3, 5), int))
    result = score.to_dict("perplexity")
    assert (
        result["value"] == pytest.approx(8) == result["low"] == result["high"]
        and result["samples"] == 3
    )


def test_score_perplexity_interval_widens_with_spread() -> None:
    score = Score()
    logits = np.zeros((2, 3, 4))
    logits[0, :, 1] = 3.0
    score.add(logits, np.ones((2, 3), int))
    result = score.to_dict("perplexity")
    assert result["low"] < result["value"] < result["high"] and result["value"] < 4


def test_score_does_not_overflow_for_large_outputs() -> None:
    score = Score()
    score.add(np.array([[1000.0, 0.0]]), np.array([0]))
    assert score.to_dict("accuracy")["loss"] == pytest.approx(0)
