from __future__ import annotations

import numpy as np
import pytest

from steptime.analysis.flags.steadiness import (
    Trend,
    common_trend,
    drift,
    gap_between_groups,
    level_shift,
    memory,
    neighbour_correlation_p,
)

pytestmark = pytest.mark.slow
SEEDS = range(200)


def noise(seed: int, count: int = 30) -> np.ndarray:
    return 1 + 0.02 * np.random.default_rng(seed).standard_normal(count)


@pytest.mark.parametrize("rule", [drift, level_shift])
def test_drift_and_level_shift_are_rare_in_noise(rule: object) -> None:
    found = [rule(noise(seed)) for seed in SEEDS]  # type: ignore[operator]
    assert np.mean([trend.p < 0.05 for trend in found]) <= 0.08


def test_drift_measures_a_ramp() -> None:
    trends = [drift(noise(seed) * np.linspace(1, 1.09, 30)) for seed in SEEDS]
    assert np.mean([trend is not None and trend.p < 0.01 for trend in trends]) >= 0.95
    assert np.median([trend.change for trend in trends if trend]) == pytest.approx(0.06, abs=0.01)


def test_level_shift_finds_size_and_position() -> None:
    trends = [level_shift(noise(seed) * np.where(np.arange(30) < 12, 1, 1.1)) for seed in SEEDS]
    assert (
        np.mean(
            [
                trend is not None and trend.p < 0.01 and abs(trend.position - 12) <= 1
                for trend in trends
            ]
        )
        >= 0.95
    )
    assert np.median([trend.change for trend in trends if trend]) == pytest.approx(0.1, abs=0.01)


def test_level_shift_ignores_one_wild_block() -> None:
    medians = noise(1)
    medians[13] = 50
    trend = level_shift(medians)
    assert trend is not None and trend.p > 0.01


def test_trends_are_none_for_few_points() -> None:
    assert drift(noise(1, 5)) is None and level_shift(noise(1, 5)) is None


def test_trends_ignore_equal_points() -> None:
    assert [trend and trend.p for trend in (drift(np.ones(20)), level_shift(np.ones(20)))] == [1, 1]


def correlated(seed: int, correlation: float, count: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(count)
    for i in range(1, count):
        values[i] = correlation * values[i - 1] + np.sqrt(1 - correlation**2) * values[i]
    return np.exp(0.02 * values)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6, 0.8])
def test_memory_estimates_the_correlation_of_neighbours(correlation: float) -> None:
    estimates = []
    for seed in range(40):
        estimates.append(memory([correlated(100 * seed + i, correlation) for i in range(8)]))
    assert np.mean(estimates) == pytest.approx(correlation, abs=0.08)


def test_memory_ignores_a_change_of_level_and_wild_points() -> None:
    courses = [correlated(i, 0.0) * np.where(np.arange(40) < 15 + i, 1, 1.2) for i in range(8)]
    assert memory(courses) < 0.3
    courses = [correlated(i, 0.7) for i in range(8)]
    for course in courses:
        course[7] = 5.0
    assert memory(courses) > 0.5


def test_memory_is_zero_for_few_points() -> None:
    assert memory([]) == memory([noise(1, 5)]) == 0.0


def test_trends_are_rare_in_correlated_noise_only_with_its_memory() -> None:
    courses = [correlated(seed, 0.7) for seed in SEEDS]
    for rule in (drift, level_shift):
        ignored = [rule(course).p < 0.01 for course in courses]  # type: ignore[union-attr]
        taken_out = [rule(course, 0.7).p < 0.01 for course in courses]  # type: ignore[union-attr]
        assert np.mean(taken_out) <= 0.04 and np.mean(ignored) >= 0.15


def test_common_trend_needs_agreement_of_the_processes() -> None:
    alike = [Trend(0.02, p) for p in (0.04, 0.1, 0.02, 0.3, 0.05, 0.08)]
    split = [Trend(change, 0.05) for change in (0.02, -0.02, 0.02, -0.02, 0.02, -0.02)]
    single = [Trend(0.02, 0.0001), *(Trend(0.001, 0.9) for _ in range(5))]
    common = common_trend(alike)
    assert common is not None and common.p < 0.003 and common.change == 0.02
    for trends in (split, single):
        other = common_trend(trends)
        assert other is not None and other.p > 0.01
    assert common_trend(alike[:2]) is None


def test_neighbour_correlation_is_rare_in_random_order() -> None:
    assert np.mean([neighbour_correlation_p(noise(seed, 12)) < 0.02 for seed in SEEDS]) <= 0.05


def test_neighbour_correlation_detects_slow_change() -> None:
    assert neighbour_correlation_p(np.sin(np.arange(20) / 4)) < 0.02
    assert neighbour_correlation_p(np.array([1.0, 2.0, 1.0, 2.0, 1.5, 2.5, 1.1, 2.1])) > 0.5


def test_neighbour_correlation_of_equal_values_is_chance() -> None:
    """Ranks by position would make equal medians a perfect rise."""
    assert neighbour_correlation_p(np.ones(8)) == 1.0
    assert neighbour_correlation_p(np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0])) > 0.02


def test_trend_p_is_reproducible() -> None:
    assert drift(noise(5)) == drift(noise(5))


def test_gap_between_groups_needs_a_wide_gap_and_two_values_each() -> None:
    assert gap_between_groups(np.array([1.0, 1.01, 1.02, 1.2, 1.21])) == (1.02, 1.2)
    assert gap_between_groups(np.array([1.0, 1.01, 1.02, 1.03, 1.2])) is None
    assert gap_between_groups(np.array([1.0, 1.1, 1.2, 1.3, 1.4])) is None
    assert gap_between_groups(np.array([1.0, 2.0])) is None


def test_drift_is_never_below_minus_100_percent() -> None:
    found = drift(np.array([5.0, 5.1, 4.9, 2.0, 1.9, 2.1, 1.5, 1.6, 1.4]))
    assert found is not None and found.change == pytest.approx(-0.7, abs=0.01)
