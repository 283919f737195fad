"""Where warm-up ends: robust MSER on batch medians (METHOD.md). Pure: times in, cut out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steptime.core.protocol import ROBUST, Protocol

LEAST_SPREAD = 1e-4
"""A clock may tell the same time for every step; clipping to a spread of zero would then hide the transient."""
LEAST_BATCHES = 4
"""With fewer, half of the batches is one or two, whose variance says nothing: only spikes are cut."""


@dataclass(frozen=True)
class Cut:
    cut: int  # samples before this one are warm-up
    boundary_ratio: float  # where MSER's minimum lies, 0 … 0.5 of the run
    settled: bool  # False: the minimum is at the edge of the search, so a longer run might move it


def find_cut(times: ArrayLike, protocol: Protocol) -> Cut:
    """Needs positive times, at least one. A later process starts from the largest cut that was seen before it."""
    series = np.asarray(times, dtype=np.float64)
    ratio, batches = 0.0, len(series) // protocol.batch
    if batches >= LEAST_BATCHES:
        ratio = _truncation(_clipped_batches(series, protocol), batches) / batches
    after_transient = round(ratio * batches) * protocol.batch
    known = min(protocol.warmup_start, len(series) // 2)
    cut = max(after_transient, 1, _after_last_spike(series, protocol), known)
    return Cut(min(cut, len(series) - 1), ratio, ratio < protocol.boundary)


def _clipped_batches(series: NDArray[np.float64], protocol: Protocol) -> NDArray[np.float64]:
    count = len(series) // protocol.batch
    logs = np.log(np.maximum(series[: count * protocol.batch], 1.0))  # a coarse clock may say 0 ns
    medians = np.median(logs.reshape(count, protocol.batch), axis=1)
    tail = medians[count // 2 :]
    centre = np.median(tail)
    spread = max(ROBUST * float(np.median(np.abs(tail - centre))), LEAST_SPREAD)
    clipped: NDArray[np.float64] = np.clip(
        medians, centre - protocol.clip * spread, centre + protocol.clip * spread
    )
    return clipped


def _truncation(batches: NDArray[np.float64], count: int) -> int:
    """MSER (White 1997): the truncation d ≤ m/2 with the smallest Σ_{i≥d}(yᵢ − ȳ_d)² / (m − d)²."""
    centred = batches - np.median(batches)  # sums of squares then cancel no digits
    left = count - np.arange(count // 2 + 1)
    sums, squares = (np.cumsum(y[::-1])[::-1][: count // 2 + 1] for y in (centred, centred**2))
    return int(np.argmin(np.maximum(squares - sums**2 / left, 0.0) / left**2))


def _after_last_spike(series: NDArray[np.float64], protocol: Protocol) -> int:
    """Single slow steps near the start (compilation, autotuning) that a batch's median does not see."""
    early = series[: max(20, len(series) // 10)]
    (spikes,) = np.nonzero(early > protocol.spike * np.median(series[len(series) // 2 :]))
    return 1 + int(spikes[-1]) if len(spikes) else 0


def behind_compilations(cut: int, blocks: Iterable[tuple[int, int]]) -> tuple[int, bool]:
    """The cut moved behind the last block that compiled, and whether such a block lay wholly in the kept part.

    Blocks are (samples, compilations). A block that the cut divides probably compiled in its warm-up part."""
    moved, inside, end = cut, False, 0
    for samples, compilations in blocks:
        first, end = end, end + samples
        if compilations and end > cut:
            moved, inside = end, inside or first >= cut
    return moved, inside
