"""Doubts about ranks that share a step: is one of them what the others wait for?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from steptime.analysis.process import Process
from steptime.analysis.quantiles import Numbers
from steptime.core.format import percent
from steptime.core.measurement import RankSamples

LATE, LATE_BLOCKS = 0.05, 0.75
WAITING = 0.10


def straggler(parts: Sequence[Process]) -> str | None:
    """By its own blocks where ranks run side by side. Where they exchange, all wait for it and end together: then it
    shows by the time that it was kept from running."""
    for part in parts:
        ranks = part.measurement.ranks
        if len(ranks) > 1 and (found := _late(part, ranks) or _kept_waiting(ranks)):
            return f"{found}, in process {part.attempt.process}"
    return None


def _late(part: Process, ranks: Sequence[RankSamples]) -> str | None:
    times = np.array([_block_times(part, rank) for rank in ranks])
    for rank, own in zip(ranks, times, strict=True):
        behind = own / _others(times, rank.rank) - 1
        if np.mean(behind > LATE) > LATE_BLOCKS:
            last = (
                f"ends after the others in {percent(float(np.mean(behind > LATE)))} of the blocks"
            )
            return f"{_name(rank)} {last}, {percent(float(np.median(behind)))} behind them"
    return None


def _kept_waiting(ranks: Sequence[RankSamples]) -> str | None:
    if any(rank.queue_ns is None for rank in ranks):
        return None
    shares = np.array(
        [[(rank.queue_ns or 0) / max(1, rank.stamps[-1] - rank.stamps[0])] for rank in ranks]
    )
    for rank in ranks:
        own, others = float(shares[rank.rank, 0]), float(_others(shares, rank.rank)[0])
        if own > others + WAITING:
            return f"{_name(rank)} was ready but not running for {percent(own)} of the time, the others {percent(others)}"
    return None


def _block_times(part: Process, rank: RankSamples) -> list[int]:
    edges = list(accumulate((block.samples for block in part.measurement.blocks), initial=0))
    places = [place for place, edge in enumerate(edges[:-1]) if edge >= part.measurement.cut] or [
        len(edges) - 2
    ]
    return [rank.stamps[edges[place + 1]] - rank.stamps[edges[place]] for place in places]


def _others(values: Numbers, rank: int) -> Numbers:
    found: Numbers = np.maximum(np.median(np.delete(values, rank, axis=0), axis=0), 1e-9)
    return found


def _name(rank: RankSamples) -> str:
    return f"rank {rank.rank} on {rank.node}"
