"""Autocorrelation of a series of numbers. Knows nothing of processes, time or records."""

from __future__ import annotations

import numpy as np

from steptime.analysis.quantiles import Numbers, ranks

# Up to this many lags, direct sums are faster than a Fourier transform.
DIRECT_LAGS = 64


def autocovariances(values: Numbers, lags: int) -> Numbers:
    """Of lags 0, 1, … `lags` − 1."""
    count = len(values)
    centred = values - values.mean()
    if lags <= DIRECT_LAGS:
        sums = []
        for lag in range(lags):
            # Not a dot product: BLAS would start threads, which wait for each other on a busy
            # machine.
            product = np.einsum("i,i", centred[: count - lag], centred[lag:])
            sums.append(product / count)
        return np.array(sums)
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    covariances: Numbers = np.fft.irfft(np.abs(spectrum) ** 2, size)[:lags] / count
    return covariances


def effective_samples(values: Numbers) -> float:
    """Geyer's initial positive sequence (1992): sums of neighbouring lags while positive."""
    count = len(values)
    if count < 4 or np.ptp(values) == 0:
        return float(count)
    # Most steps have a short memory: try a few lags first, all of them only if necessary.
    for lags in (4, 16, DIRECT_LAGS, count):
        covariances = autocovariances(values, min(lags, count))
        pair_count = len(covariances) // 2
        pairs = covariances[: 2 * pair_count].reshape(pair_count, 2).sum(axis=1)
        if np.any(pairs <= 0):
            pairs = pairs[: int(np.argmax(pairs <= 0))]
            break
    correlation_time = 2 * float(pairs.sum() / covariances[0]) - 1
    return min(float(count), count / max(correlation_time, 1 / count))


def lag_one(values: Numbers) -> float:
    """Correlation of each sample with the next one."""
    if len(values) < 3 or np.ptp(values) == 0:
        return 0.0
    variance, covariance = autocovariances(values, 2)
    return float(covariance / variance)


def rank_lag_one(values: Numbers) -> float:
    """Correlation of each value with the next one, by ranks: one wild value counts little.

    One minus half of von Neumann's ratio of the ranks (Bartels 1982). A steady rise gives nearly
    1; `lag_one` of a few values that rise stays far below it."""
    if len(values) < 3 or np.ptp(values) == 0:
        return 0.0
    order = ranks(values)
    steps = np.sum(np.diff(order) ** 2)
    spread = np.sum((order - order.mean()) ** 2)
    return float(1 - steps / spread / 2)
