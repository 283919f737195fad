from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptime.analysis.quantiles import bound, deviation, median, percentile, steps_needed

ROWS = (
    st.lists(st.floats(0, 100) | st.integers(0, 5).map(float), min_size=1, max_size=40)
    .map(sorted)
    .map(np.array)
)


@settings(max_examples=300, deadline=None)
@given(ROWS)
def test_median_and_deviation_equal_numpy_to_the_last_bit(row: np.ndarray) -> None:
    assert median(row) == np.median(row)
    assert deviation(row) == np.median(np.abs(row - np.median(row)))


@settings(max_examples=200, deadline=None)
@given(ROWS, st.sampled_from([0.0, 5.0, 25.0, 50.0, 90.0, 99.9, 100.0]))
def test_percentile_agrees_with_numpy(row: np.ndarray, percent: float) -> None:
    assert percentile(row, percent) == pytest.approx(np.percentile(row, percent))


@pytest.mark.parametrize(
    ("percent", "steps"), [(95, 59), (99, 299), (99.9, 2995), (5, 59), (100, 1)]
)
def test_steps_needed_matches_the_method(percent: float, steps: int) -> None:
    assert steps_needed(percent) == steps


def test_bound_of_just_enough_steps_is_the_largest() -> None:
    assert bound(np.arange(59.0), 95) == 58
    assert bound(np.arange(59.0), 5) == 0
    assert bound(np.arange(58.0), 95) is None


@pytest.mark.parametrize("percent", [25.0, 90.0, 99.0])
def test_bound_lies_beyond_the_true_percentile_in_95_percent(percent: float) -> None:
    rng = np.random.default_rng(3)
    found = [bound(np.sort(rng.random(700)), percent) for _ in range(2000)]
    beyond = np.mean(
        [value > percent / 100 if percent >= 50 else value < percent / 100 for value in found]
    )
    assert 0.94 <= beyond <= 0.98
