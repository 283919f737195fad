"""A record of several ranks, rank by rank: its steps by its own clock, and how often it is last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from steptime.analysis.estimates import Estimate, typical_time
from steptime.analysis.process import Process, measured_processes
from steptime.analysis.stopping import counted_processes
from steptime.core.measurement import Measurement, RankSamples
from steptime.core.record import Record

Times = NDArray[np.int64]
UNDECIDED = -1


@dataclass(frozen=True)
class Rank:
    rank: int
    # Several names if its processes ran on several nodes.
    node: str
    device: str  # empty: not recorded
    typical_time_seconds: Estimate  # by its own clock
    # Of the steps: those that it ended last.
    slowest_share: float
    # Alone, from the latest process that recorded it.
    exchange_seconds: float | None


@dataclass(frozen=True)
class ByRank:
    ranks: tuple[Rank, ...]
    # Steps whose last two ranks ended within the error of their clocks.
    undecided_share: float


def by_rank(record: Record) -> ByRank | None:
    """From the processes that count for the result. None: a single rank ran the steps."""
    processes = [
        process
        for process in counted_processes(record.attempts)
        if len(process.measurement.ranks) > 1
    ]
    if not processes:
        return None
    last = np.concatenate([last_to_end(process.measurement) for process in processes])
    exchange = _exchange_seconds(processes)
    ranks = []
    for rank in range(len(processes[-1].measurement.ranks)):
        slowest_share = float(np.mean(last == rank))
        ranks.append(_rank(processes, rank, slowest_share, exchange.get(rank)))
    return ByRank(tuple(ranks), float(np.mean(last == UNDECIDED)))


def last_to_end(measurement: Measurement) -> NDArray[np.intp]:
    """The rank that ended each kept sample last; UNDECIDED if the clocks cannot tell two apart."""
    edges = list(accumulate((block.samples for block in measurement.blocks), initial=0))
    kept_ends = [_end_times(rank, edges)[measurement.cut :] for rank in measurement.ranks]
    ends = np.array(kept_ends)
    ascending = np.sort(ends, axis=0)
    lead_ns = ascending[-1] - ascending[-2]
    # The errors of any two clocks add up; at worst these are the two largest ones.
    error_ns = sum(sorted(rank.offset_error_ns for rank in measurement.ranks)[-2:])
    last: NDArray[np.intp] = np.where(lead_ns > error_ns, ends.argmax(axis=0), UNDECIDED)
    return last


def _end_times(rank: RankSamples, edges: Sequence[int]) -> Times:
    """On rank 0's clock, pauses included. Two clocks are taken to drift apart evenly."""
    stamps = np.array(rank.stamps, np.int64)
    pauses = np.cumsum(rank.idle_ns, dtype=np.int64)
    ends = stamps[1:] + np.repeat(pauses, np.diff(edges))
    begin = stamps[0] + pauses[0]
    first_offset, last_offset = rank.offset_ns
    share = (ends - begin) / max(1, ends[-1] - begin)
    drift = np.rint(share * (last_offset - first_offset)).astype(np.int64)
    shifted: Times = ends + first_offset + drift
    return shifted


def _rank(
    processes: Sequence[Process], rank: int, slowest_share: float, exchange_seconds: float | None
) -> Rank:
    samples = [process.measurement.ranks[rank] for process in processes]
    default_device = "cpu" if processes[-1].attempt.case.device == "cpu" else ""
    nodes = [sample.node for sample in samples]
    devices = [sample.device or default_device for sample in samples]
    alone = []
    for process, sample in zip(processes, samples, strict=True):
        alone.append(_as_single_rank(process, sample))
    return Rank(
        rank=rank,
        node=_join_distinct(nodes),
        device=_join_distinct(devices),
        typical_time_seconds=typical_time(alone),
        slowest_share=slowest_share,
        exchange_seconds=exchange_seconds,
    )


def _join_distinct(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _as_single_rank(process: Process, rank: RankSamples) -> Process:
    """The process as if this rank had run alone."""
    measurement = replace(
        process.measurement, stamps=rank.stamps, device_ns=rank.device_ns, ranks=()
    )
    return measured_processes([replace(process.attempt, measurement=measurement)])[0]


def _exchange_seconds(processes: Sequence[Process]) -> dict[int, float]:
    """By rank, from the latest process that recorded them."""
    for process in reversed(processes):
        seconds = process.attempt.findings.get("exchange", {}).get("rank_seconds")
        if seconds:
            return dict(enumerate(seconds))
    return {}
