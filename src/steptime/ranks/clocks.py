"""One clock for all ranks: stamps moved to rank 0's clock.

`Rendezvous.measure_offsets` measures how far the clocks of two hosts are apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steptime.core.measurement import RankSamples

Times = NDArray[np.int64]


class RankClock:
    """One rank's stamps on rank 0's clock, including the pauses that the stamps leave out."""

    def __init__(self, rank: RankSamples, edges: Sequence[int]) -> None:
        stamps = np.array(rank.stamps, np.int64)
        pauses = np.cumsum(rank.idle_ns, dtype=np.int64)
        ends = stamps[1:] + np.repeat(pauses, np.diff(edges))
        begins = stamps[list(edges[:-1])] + pauses
        first_offset, last_offset = rank.offset_ns

        def to_rank0(times: Times) -> Times:
            """The offset grows linearly from the first to the last measured one."""
            share = (times - begins[0]) / max(1, ends[-1] - begins[0])
            drift = np.rint(share * (last_offset - first_offset)).astype(np.int64)
            moved: Times = times + first_offset + drift
            return moved

        self.ends = to_rank0(ends)
        self.begins = to_rank0(begins).tolist()
        self.device_ns = np.array(rank.device_ns or (), np.int64)
