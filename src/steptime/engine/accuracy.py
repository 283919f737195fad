"""How a low precision changes a network's outputs, in float64 and deterministic.

Knows only arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from steptime.core.errors import SteptimeError
from steptime.engine.task_metric import log_softmax, wilson

Array = Any

LEAST_SAMPLES, MOST_SAMPLES = 8, 64
MOST_FLOPS = {"synthetic": 1e11, "test set": 1e12}
# Outputs of one precision are kept until those of the other have been computed.
MOST_OUTPUT_BYTES = 1 << 30
# Logits that one thread compares at once: its float64 copies stay small.
PART_LOGITS = 1 << 20


def sample_count(flops: float, output_bytes: int, data: str) -> int:
    """How many samples to compare, at little cost.

    It depends on the network alone, so that all batch sizes are compared on the same samples.
    `flops` and `output_bytes` are those of one sample."""
    most = min(MOST_FLOPS[data] // max(flops, 1), MOST_OUTPUT_BYTES // output_bytes)
    if data == "synthetic":
        most = min(most, MOST_SAMPLES)
    return max(int(most), LEAST_SAMPLES)


@dataclass(frozen=True)
class Tally:
    """Counts and sums over some positions. A position is one row of logits.

    A position with a value that is not finite is broken: it counts as a disagreement, and it
    is left out of the errors."""

    positions: int
    logits: int
    broken: int
    largest: float  # error
    error: float
    squares: float  # of the exact logits
    divergence: float
    # Positions that have the largest logit at the same class.
    agreed: int


def compare_outputs(exact_batches: Sequence[Array], low_batches: Sequence[Array]) -> dict[str, Any]:
    """Compare outputs of the same batches in fp32 and in the low precision."""
    row_pairs = list(_pair_rows(exact_batches, low_batches))
    # NumPy computes outside of Python's lock. The order of the sums does not depend on threads.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        tallies = list(pool.map(_tally, row_pairs))
    positions = sum(tally.positions for tally in tallies)
    logits = sum(tally.logits for tally in tallies)
    broken = sum(tally.broken for tally in tallies)
    agreed = sum(tally.agreed for tally in tallies)
    rms = float(np.sqrt(sum(tally.squares for tally in tallies) / logits))
    if not np.isfinite(rms):
        raise SteptimeError(
            "The outputs in fp32 are not finite, so no precision can be compared with them."
        )
    finite = positions - broken
    largest = mean = divergence = None
    if finite:
        largest = max(tally.largest for tally in tallies)
        mean = sum(tally.error for tally in tallies) / (logits / positions * finite)
        divergence = sum(tally.divergence for tally in tallies) / finite
    return {
        "samples": sum(map(len, exact_batches)),
        "positions": positions,
        "broken_positions": broken,
        "largest_logit_error": largest,
        "mean_logit_error": mean,
        "reference_rms": rms,
        "largest_relative_error": _relative(largest, rms),
        "mean_relative_error": _relative(mean, rms),
        "kl_divergence": divergence,
        "top1_agreement": agreed / positions,
        "top1_agreement_interval": list(wilson(agreed, positions)),
    }


def _pair_rows(
    exact_batches: Sequence[Array], low_batches: Sequence[Array]
) -> Iterator[tuple[Array, Array]]:
    """Rows of both, a few at a time."""
    for exact_batch, low_batch in zip(exact_batches, low_batches, strict=True):
        exact = _rows(exact_batch)
        low = _rows(low_batch)
        count = max(1, PART_LOGITS // exact.shape[-1])
        for start in range(0, len(exact), count):
            yield exact[start : start + count], low[start : start + count]


def _tally(row_pair: tuple[Array, Array]) -> Tally:
    exact, low = (rows.astype(np.float64) for rows in row_pair)
    is_finite = np.isfinite(low).all(-1)
    exact_finite = exact[is_finite]
    low_finite = low[is_finite]
    error = np.abs(low_finite - exact_finite)
    p = log_softmax(exact_finite)
    q = log_softmax(low_finite)
    same_class = exact_finite.argmax(-1) == low_finite.argmax(-1)
    return Tally(
        positions=len(exact),
        logits=exact.size,
        broken=int((~is_finite).sum()),
        largest=float(error.max(initial=0.0)),
        error=float(error.sum()),
        squares=float(np.square(exact).sum()),
        divergence=float((np.exp(p) * (p - q)).sum()),
        agreed=int(same_class.sum()),
    )


def _rows(outputs: Array) -> Array:
    return np.asarray(outputs).reshape(-1, outputs.shape[-1])


def _relative(value: float | None, rms: float) -> float | None:
    """Outputs that are all zero have no scale: their error stays absolute."""
    return None if value is None else value / (rms or 1.0)
