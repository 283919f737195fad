from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from steptime.analysis.suite import discoveries, geometric_mean_ratio


def test_discoveries_are_those_of_benjamini_and_hochberg() -> None:
    p_values = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]
    assert discoveries(p_values) == (stats.false_discovery_control(p_values) <= 0.05).tolist()
    assert sum(discoveries(p_values)) == 2


def test_the_order_of_the_benchmarks_does_not_matter() -> None:
    assert discoveries([0.9, 0.001, 0.5]) == [False, True, False]
    assert discoveries([]) == []


def test_a_small_p_carries_larger_ones_along() -> None:
    assert discoveries([0.02, 0.03, 0.04, 0.049]) == [True] * 4


def test_the_mean_over_a_suite_is_geometric_and_has_an_interval() -> None:
    dice = np.random.default_rng(1)
    suite = [math.log(ratio) + 0.01 * dice.standard_normal(12) for ratio in (0.5, 2.0, 1.21)]
    found = geometric_mean_ratio(suite)
    assert found.centre == pytest.approx(1.21 ** (1 / 3), rel=0.01)
    assert found.low < 1.21 ** (1 / 3) < found.high
    assert found.half_width < 0.01
