"""Flags about ranks that share a step: do the others wait for one of them?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from steptime.analysis.process import Process
from steptime.analysis.quantiles import Numbers
from steptime.core.format import percent
from steptime.core.measurement import RankSamples

# A straggler is late by this share in this share of the blocks.
LATE = 0.05
LATE_BLOCKS = 0.75
# Or it was ready but not running for this much more of the time than the others.
QUEUE_EXCESS = 0.10


def straggler(processes: Sequence[Process]) -> str | None:
    """By its block times if ranks run independently.

    Ranks that exchange end together, so a straggler shows by the time it was kept from running."""
    for process in processes:
        ranks = process.measurement.ranks
        if len(ranks) > 1:
            evidence = _late_rank(process, ranks) or _queued_rank(ranks)
            if evidence:
                return f"{evidence}, in process {process.attempt.process}"
    return None


def _late_rank(process: Process, ranks: Sequence[RankSamples]) -> str | None:
    times = np.array([_block_times(process, rank) for rank in ranks])
    for rank, rank_times in zip(ranks, times, strict=True):
        excess = rank_times / _median_of_others(times, rank.rank) - 1
        late_share = float(np.mean(excess > LATE))
        if late_share > LATE_BLOCKS:
            late = f"ends after the others in {percent(late_share)} of the blocks"
            return f"{_name(rank)} {late}, {percent(float(np.median(excess)))} later"
    return None


def _queued_rank(ranks: Sequence[RankSamples]) -> str | None:
    shares = []
    for rank in ranks:
        if rank.queue_share is None:
            return None
        shares.append([rank.queue_share])
    queue_shares = np.array(shares)
    for rank in ranks:
        share = float(queue_shares[rank.rank, 0])
        others = float(_median_of_others(queue_shares, rank.rank)[0])
        if share > others + QUEUE_EXCESS:
            queued = f"was ready but not running for {percent(share)} of the time"
            return f"{_name(rank)} {queued}, the others {percent(others)}"
    return None


def _block_times(process: Process, rank: RankSamples) -> list[int]:
    measurement = process.measurement
    edges = list(accumulate((block.samples for block in measurement.blocks), initial=0))
    kept = [i for i, edge in enumerate(edges[:-1]) if edge >= measurement.cut]
    # The last block, if warm-up reaches into it.
    blocks = kept or [len(edges) - 2]
    return [rank.stamps[edges[i + 1]] - rank.stamps[edges[i]] for i in blocks]


def _median_of_others(values: Numbers, rank: int) -> Numbers:
    """Above zero, since it is divided by."""
    others = np.delete(values, rank, axis=0)
    medians: Numbers = np.maximum(np.median(others, axis=0), 1e-9)
    return medians


def _name(rank: RankSamples) -> str:
    return f"rank {rank.rank} on {rank.node}"
