from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from steptime.analysis.intervals import (
    mann_whitney,
    mann_whitney_distribution,
    shift,
    signed_rank,
    signed_rank_distribution,
    signed_rank_p,
    student,
    typical,
)

pytestmark = pytest.mark.slow
VALUES = np.array([1.2, 3.4, 2.2, 9.9, 4.1, 2.9, 3.3, 5.0])


def test_signed_rank_distribution_counts_all_signs() -> None:
    sums = [int(np.dot(range(1, 8), signs)) for signs in product((0, 1), repeat=7)]
    assert signed_rank_distribution(7) == pytest.approx(np.bincount(sums) / 2**7, abs=1e-15)


def test_mann_whitney_distribution_counts_all_choices() -> None:
    sums = [sum(chosen) - 6 for chosen in combinations(range(7), 4)]
    assert mann_whitney_distribution(4, 3) == pytest.approx(np.bincount(sums) / 35, abs=1e-15)


def test_distributions_sum_to_one_for_many_processes() -> None:
    assert signed_rank_distribution(36).sum() == pytest.approx(1)
    assert mann_whitney_distribution(36, 36).sum() == pytest.approx(1)


def test_signed_rank_interval_needs_six_values() -> None:
    found = signed_rank(VALUES[:6], 0.035)
    assert found is not None
    assert (found.low, found.high) == (1.2, 9.9)
    assert signed_rank(VALUES[:5], 0.035) is None


def test_signed_rank_interval_is_as_deep_as_alpha_allows() -> None:
    averages = sorted((a + b) / 2 for i, a in enumerate(VALUES) for b in VALUES[i:])
    found = signed_rank(VALUES, 0.05)
    assert found is not None
    # Tables: for 8 values the two-sided 5 % point of the signed-rank sum is 3.
    assert (found.low, found.high) == (averages[3], averages[-4])
    assert found.centre == np.median(averages)


def test_signed_rank_interval_excludes_zero_if_the_test_rejects() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        values = rng.normal(0.7, 1, size=9)
        found = signed_rank(values, 0.05)
        assert found is not None
        assert (found.low > 0 or found.high < 0) == (signed_rank_p(values) <= 0.05)


def test_signed_rank_p_agrees_with_scipy() -> None:
    values = VALUES - 2.5
    assert signed_rank_p(values) == pytest.approx(stats.wilcoxon(values, method="exact").pvalue)


def test_mann_whitney_interval_excludes_zero_if_the_test_rejects() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        first, second = rng.normal(0, 1, 6), rng.normal(1, 1, 8)
        found = mann_whitney(first, second, 0.05)
        assert found is not None
        p = stats.mannwhitneyu(first, second, method="exact").pvalue
        assert (found.low > 0 or found.high < 0) == (p <= 0.05)


def test_mann_whitney_has_no_interval_for_two_against_two() -> None:
    assert mann_whitney(VALUES[:2], VALUES[2:4], 0.05) is None


def test_shift_finds_a_common_shift_exactly() -> None:
    assert shift(VALUES, VALUES + 0.5) == pytest.approx(0.5)
    assert typical(VALUES + 0.5) == pytest.approx(typical(VALUES) + 0.5)


def test_student_agrees_with_scipy() -> None:
    found = student(VALUES, 0.05)
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.half_width == pytest.approx((expected.high - expected.low) / 2 / VALUES.mean())
    assert student(VALUES[:1], 0.05) is None
