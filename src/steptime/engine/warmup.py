"""Where warm-up ends: robust MSER on batch medians (METHOD.md). Pure: times in, cut out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steptime.core.protocol import ROBUST, Protocol

# A coarse clock may give every step the same time. Clipping to a spread of 0 would hide the
# transient.
LEAST_SPREAD = 1e-4
# With fewer batches the variance of half of them means nothing, so only spikes are cut.
LEAST_BATCHES = 4


@dataclass(frozen=True)
class Cut:
    # Samples before this one are warm-up.
    cut: int
    # The position of MSER's minimum, 0 … 0.5 of the run.
    boundary_ratio: float
    # False: the minimum is at the edge of the search, so a longer run might move it.
    settled: bool


def find_cut(times: ArrayLike, protocol: Protocol) -> Cut:
    """Needs at least one time, all positive.

    A later process starts from the largest cut of the earlier ones."""
    series = np.asarray(times, dtype=np.float64)
    ratio = 0.0
    batches = len(series) // protocol.batch
    if batches >= LEAST_BATCHES:
        medians = _clipped_batch_medians(series, protocol)
        ratio = _truncation(medians, batches) / batches
    after_transient = round(ratio * batches) * protocol.batch
    seen_before = min(protocol.warmup_start, len(series) // 2)
    cut = max(after_transient, 1, _after_last_spike(series, protocol), seen_before)
    return Cut(min(cut, len(series) - 1), ratio, ratio < protocol.boundary)


def _clipped_batch_medians(series: NDArray[np.float64], protocol: Protocol) -> NDArray[np.float64]:
    count = len(series) // protocol.batch
    # At least 1 ns, because a coarse clock may report 0.
    logs = np.log(np.maximum(series[: count * protocol.batch], 1.0))
    medians = np.median(logs.reshape(count, protocol.batch), axis=1)
    tail = medians[count // 2 :]
    centre = np.median(tail)
    spread = max(ROBUST * float(np.median(np.abs(tail - centre))), LEAST_SPREAD)
    width = protocol.clip * spread
    clipped: NDArray[np.float64] = np.clip(medians, centre - width, centre + width)
    return clipped


def _truncation(batches: NDArray[np.float64], count: int) -> int:
    """MSER (White 1997): the d ≤ m/2 with the smallest Σ_{i≥d}(yᵢ − ȳ_d)² / (m − d)²."""
    # Centred values keep the digits that sums of squares would cancel.
    centred = batches - np.median(batches)
    remaining = count - np.arange(count // 2 + 1)
    sums = _tail_sums(centred)[: count // 2 + 1]
    squares = _tail_sums(centred**2)[: count // 2 + 1]
    deviations = np.maximum(squares - sums**2 / remaining, 0.0)
    return int(np.argmin(deviations / remaining**2))


def _tail_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum from each value to the last."""
    return np.cumsum(values[::-1])[::-1]


def _after_last_spike(series: NDArray[np.float64], protocol: Protocol) -> int:
    """After single slow early steps (compilation, autotuning), which batch medians hide."""
    early = series[: max(20, len(series) // 10)]
    typical = np.median(series[len(series) // 2 :])
    (spikes,) = np.nonzero(early > protocol.spike * typical)
    return 1 + int(spikes[-1]) if len(spikes) else 0


def move_past_compilations(cut: int, blocks: Iterable[tuple[int, int]]) -> tuple[int, bool]:
    """The cut moved after the last block that compiled, and whether one lay entirely after the cut.

    Blocks are (samples, compilations). A block that the cut divides probably compiled in its
    warm-up part."""
    moved_cut = cut
    recompiled = False
    end = 0
    for samples, compilations in blocks:
        first = end
        end += samples
        if compilations and end > cut:
            moved_cut = end
            recompiled = recompiled or first >= cut
    return moved_cut, recompiled
