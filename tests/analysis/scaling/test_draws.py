"""Numbers that carry their uncertainty."""

from __future__ import annotations

import numpy as np
import pytest

from steptime.analysis.intervals import student
from steptime.analysis.scaling.draws import (
    draw_typical,
    estimate,
    fit_factors,
    has_spread,
    holds_zero,
    interval_ends,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_draw_typical_has_student_interval() -> None:
    seconds = np.array([1.0, 1.02, 0.99, 1.01, 1.03, 0.98])
    exact = student(np.log(seconds), 0.05)
    assert exact is not None
    assert np.log(interval_ends(draw_typical(seconds, rng()))) == pytest.approx(
        (exact.low, exact.high), abs=1e-3
    )


def test_estimate_of_two_processes_has_no_interval() -> None:
    told = estimate(draw_typical([1.0, 1.1], rng()))
    assert (told.low, told.high, told.claim) == (None, None, "no interval: too few processes")
    assert told.value == pytest.approx(1.05, rel=0.01)


def test_difference_with_unknown_spread_has_no_interval() -> None:
    difference = draw_typical([2.0, 2.0, 2.1], rng()) - draw_typical([1.0], rng())
    assert not has_spread(difference) and holds_zero(difference)


def test_ratio_of_draws_keeps_its_coverage() -> None:
    throw, hits = rng(1), 0
    for _ in range(400):
        above, below = (
            draw_typical(np.exp(sd * throw.standard_normal(6)), throw) for sd in (0.01, 0.03)
        )
        hits += holds_zero(above - below)
    assert 0.93 <= hits / 400 <= 0.99


def test_draw_typical_is_robust_against_one_outlier() -> None:
    calm, disturbed = (
        draw_typical([1.0, 1.01, 0.99, 1.0, 1.02, last], rng()) for last in (1.0, 3.0)
    )
    assert disturbed[0] == pytest.approx(calm[0], rel=0.02)
    assert interval_ends(disturbed)[1] > 1.3 > interval_ends(calm)[1]


def test_fit_factors_finds_the_factors() -> None:
    shapes = [[1.0, 1e9 / count] for count in (1, 2, 4)]
    values = [draw_typical([3 + 2e-9 * size] * 3, rng()) for _, size in shapes]
    assert [factor[0] for factor in fit_factors(shapes, values)] == pytest.approx([3, 2e-9])


def test_draw_typical_is_reproducible() -> None:
    assert np.array_equal(
        draw_typical([1.0, 1.1, 0.9], rng(3)), draw_typical([1.0, 1.1, 0.9], rng(3))
    )


@pytest.mark.parametrize("spread", [0.5, 2.0, 30.0])
@pytest.mark.parametrize("counts", [(1, 2), (1, 2, 4)])
def test_fit_factors_survives_draws_that_lie_far_out(
    counts: tuple[int, ...], spread: float
) -> None:
    for seed in range(20):
        throw = rng(seed)
        values = [draw_typical(np.exp(spread * throw.standard_normal(3)), throw) for _ in counts]
        factors = fit_factors([[1.0, 1 / count] for count in counts], values)
        assert all(np.isfinite(factor[0]) for factor in factors)


def test_fit_factors_minimises_relative_errors() -> None:
    throw = rng(5)
    shapes = [[1.0, 1 / count] for count in (1, 2, 4, 8)]
    values = [draw_typical(np.exp(0.02 * throw.standard_normal(4)), throw) for _ in shapes]
    design = np.array(shapes) / np.array([value[0] for value in values])[:, None]
    expected = np.linalg.lstsq(design, np.ones(4), rcond=None)[0]
    assert [factor[0] for factor in fit_factors(shapes, values)] == pytest.approx(expected)


def test_estimate_says_that_the_processes_are_too_far_apart() -> None:
    number = draw_typical([1.0, 1.1, 0.9], rng())
    number[5] = np.nan
    assert estimate(number).claim == "no interval: the processes are too far apart"
