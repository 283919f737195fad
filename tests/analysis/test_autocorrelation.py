from __future__ import annotations

import numpy as np
import pytest

from steptime.analysis.autocorrelation import (
    DIRECT_LAGS,
    autocovariances,
    effective_samples,
    lag_one,
)


def remembering(share: float, count: int, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(count)
    for i in range(1, count):
        values[i] += share * values[i - 1]
    return values


def test_effective_samples_of_independent_steps_is_their_count() -> None:
    assert effective_samples(remembering(0.0, 20_000)) == pytest.approx(20_000, rel=0.05)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.98])
def test_effective_samples_of_correlated_steps_matches_theory(share: float) -> None:
    count = 200_000
    assert effective_samples(remembering(share, count)) == pytest.approx(
        count * (1 - share) / (1 + share), rel=0.15
    )


def test_autocovariances_by_fourier_and_directly_agree() -> None:
    values = remembering(0.7, 1000)
    by_fourier = autocovariances(values, DIRECT_LAGS + 1)
    assert by_fourier[:DIRECT_LAGS] == pytest.approx(
        autocovariances(values, DIRECT_LAGS), rel=1e-6, abs=1e-12
    )


def test_lag_one_finds_the_correlation_of_neighbours() -> None:
    assert lag_one(remembering(0.6, 20_000)) == pytest.approx(0.6, abs=0.03)


def test_constant_series_has_no_autocorrelation() -> None:
    assert (effective_samples(np.ones(10)), lag_one(np.ones(10))) == (10.0, 0.0)
