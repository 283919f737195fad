"""A record of several ranks, rank by rank: its own steps by its own clock, and how often the others waited for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from steptime.analysis.estimates import Estimate, typical_time
from steptime.analysis.process import Process, measured_processes
from steptime.analysis.stopping import set_aside
from steptime.core.measurement import Measurement, RankSamples
from steptime.core.record import Record

Times = NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True)
class Rank:
    rank: int
    node: str  # or several, where its processes ran on several
    device: str  # empty: not recorded
    typical_time_seconds: Estimate  # by its own clock
    slowest_share: float  # of the steps: it ended them last
    exchange_seconds: float | None  # alone, of the latest process that tells


@dataclass(frozen=True)
class ByRank:
    ranks: tuple[Rank, ...]
    undecided_share: float  # steps whose last two ranks ended within the error of their clocks


def by_rank(record: Record) -> ByRank | None:
    """Of the processes that the result counts. None: the steps were one rank's."""
    everyone = measured_processes(record.attempts)
    aside = set_aside(everyone)
    parts = [
        part
        for part in everyone
        if part.attempt.id not in aside and len(part.measurement.ranks) > 1
    ]
    if not parts:
        return None
    last = np.concatenate([last_to_end(part.measurement) for part in parts])
    alone = _exchange(parts)
    count = len(parts[-1].measurement.ranks)
    ranks = [
        _rank(parts, rank, float(np.mean(last == rank)), alone.get(rank)) for rank in range(count)
    ]
    return ByRank(tuple(ranks), float(np.mean(last == NOBODY)))


def last_to_end(measurement: Measurement) -> NDArray[np.intp]:
    """The rank that ended each kept sample; nobody where two of them did as far as their clocks can tell."""
    edges = list(accumulate((block.samples for block in measurement.blocks), initial=0))
    ends = np.array([_ends(rank, edges)[measurement.cut :] for rank in measurement.ranks])
    ascending = np.sort(ends, axis=0)
    error_ns = sum(sorted(rank.offset_error_ns for rank in measurement.ranks)[-2:])
    found: NDArray[np.intp] = np.where(
        ascending[-1] - ascending[-2] > error_ns, ends.argmax(axis=0), NOBODY
    )
    return found


def _ends(rank: RankSamples, edges: Sequence[int]) -> Times:
    """On rank 0's clock, pauses included; two clocks run apart evenly."""
    stamps, pauses = np.array(rank.stamps, np.int64), np.cumsum(rank.idle_ns, dtype=np.int64)
    own = stamps[1:] + np.repeat(pauses, np.diff(edges))
    begin, (first, last) = stamps[0] + pauses[0], rank.offset_ns
    share = (own - begin) / max(1, own[-1] - begin)
    found: Times = own + first + np.rint(share * (last - first)).astype(np.int64)
    return found


def _rank(
    parts: Sequence[Process], rank: int, slowest_share: float, exchange_seconds: float | None
) -> Rank:
    seen = [part.measurement.ranks[rank] for part in parts]
    cpu = "cpu" if parts[-1].attempt.case.device == "cpu" else ""
    return Rank(
        rank=rank,
        node=", ".join(dict.fromkeys(one.node for one in seen)),
        device=", ".join(dict.fromkeys(one.device or cpu for one in seen)),
        typical_time_seconds=typical_time(
            [_own(part, one) for part, one in zip(parts, seen, strict=True)]
        ),
        slowest_share=slowest_share,
        exchange_seconds=exchange_seconds,
    )


def _own(part: Process, rank: RankSamples) -> Process:
    """As if this rank had been alone."""
    own = replace(part.measurement, stamps=rank.stamps, device_ns=rank.device_ns, ranks=())
    return measured_processes([replace(part.attempt, measurement=own)])[0]


def _exchange(parts: Sequence[Process]) -> dict[int, float]:
    told = [part.attempt.findings.get("exchange", {}).get("rank_seconds") for part in parts]
    return dict(enumerate(next((seconds for seconds in reversed(told) if seconds), ())))
