"""How much a row of numbers remembers. Knows nothing of processes, time or records."""

from __future__ import annotations

import numpy as np

from steptime.analysis.quantiles import Numbers

DIRECT_LAGS = 64


def autocovariances(values: Numbers, lags: int) -> Numbers:
    """Of lags 0, 1, … one less than `lags`."""
    count = len(values)
    centred = values - values.mean()
    if lags <= DIRECT_LAGS:
        # Not a dot product: that would start a library's threads, which on a busy machine wait for each other.
        return np.array(
            [np.einsum("i,i", centred[: count - lag], centred[lag:]) / count for lag in range(lags)]
        )
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    covariances: Numbers = np.fft.irfft(np.abs(spectrum) ** 2, size)[:lags] / count
    return covariances


def effective_samples(values: Numbers) -> float:
    """Geyer's initial positive sequence (1992): sums of neighbouring lags, until one is not positive."""
    count = len(values)
    if count < 4 or np.ptp(values) == 0:
        return float(count)
    # Most steps soon forget: a few lags one by one, and only for long memory all of them by Fourier transform.
    for lags in (4, 16, DIRECT_LAGS, count):
        covariances = autocovariances(values, min(lags, count))
        whole = len(covariances) // 2
        pairs = covariances[: 2 * whole].reshape(whole, 2).sum(axis=1)
        if np.any(pairs <= 0):
            pairs = pairs[: int(np.argmax(pairs <= 0))]
            break
    time = 2 * float(pairs.sum() / covariances[0]) - 1
    return min(float(count), count / max(time, 1 / count))


def lag_one(values: Numbers) -> float:
    """Correlation of each sample with the next one."""
    if len(values) < 3 or np.ptp(values) == 0:
        return 0.0
    variance, covariance = autocovariances(values, 2)
    return float(covariance / variance)
