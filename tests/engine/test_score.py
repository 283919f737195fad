from __future__ import annotations

import numpy as np
import pytest

from steptime.engine.score import Score


def test_score_accuracy_counts_correct_answers_of_all_batches() -> None:
    score = Score()
    score.add(np.eye(4), np.array([0, 1, 2, 0]))
    score.add(np.eye(4)[:2], np.array([0, 0]))
    told = score.to_dict("accuracy")
    assert (told["correct"], told["predictions"], told["value"]) == (4, 6, 4 / 6)
    assert 0.29 < told["low"] < 0.31 and 0.90 < told["high"] < 0.91  # Wilson, 4 of 6


def test_score_perplexity_is_number_of_equally_likely_words() -> None:
    score = Score()
    score.add(np.zeros((3, 5, 8)), np.zeros((3, 5), int))
    told = score.to_dict("perplexity")
    assert told["value"] == pytest.approx(8) == told["low"] == told["high"] and told["samples"] == 3


def test_score_perplexity_interval_widens_with_spread() -> None:
    score = Score()
    logits = np.zeros((2, 3, 4))
    logits[0, :, 1] = 3.0
    score.add(logits, np.ones((2, 3), int))
    told = score.to_dict("perplexity")
    assert told["low"] < told["value"] < told["high"] and told["value"] < 4


def test_score_does_not_overflow_for_large_outputs() -> None:
    score = Score()
    score.add(np.array([[1000.0, 0.0]]), np.array([0]))
    assert score.to_dict("accuracy")["loss"] == pytest.approx(0)
