"""What the exchange of a step costs alone: the same bytes among the same ranks, without compute.

A second exchange of one number separates latency from bandwidth:
seconds = latency + bytes / bandwidth."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import Any, cast

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.inspection import Inspectable
from steptime.core.program import Program
from steptime.ranks.rendezvous import Rendezvous

LEAST_REPEATS, MOST_REPEATS = 3, 20
# All repeats together take about this long, unless the least number takes longer.
SECONDS = 2.0
# An interval leaves out at most this probability on each side.
TAIL = 0.025
LEAST_SECONDS = 1e-9  # a coarse clock may report 0 s

# `value`, `low` and `high`. A missing end: too few repeats, or nothing limits that side.
Interval = dict[str, float | None]


def explain_missing_exchange(program: Program, case: Case) -> str:
    """Why the ranks cannot exchange gradients as the case says; empty if they can.

    Only training has something to exchange."""
    if case.phase != "training" or case.exchange == "independent" or hasattr(program, "exchange"):
        return ""
    return f"{case.framework} has no exchange={case.exchange} here; use exchange=independent."


def measure_exchange(program: Program, rendezvous: Rendezvous) -> dict[str, Any]:
    """Findings of rank 0. An exchange takes as long as its slowest rank."""
    try:
        moved, rank_seconds = _time_repeats(program, rendezvous)
        tiny_moved, rank_tiny_seconds = _time_repeats(program, rendezvous, tiny=True)
    except Unsupported:
        return {}
    if not rank_seconds:
        return {}
    seconds = slowest_seconds(rank_seconds)
    tiny_seconds = slowest_seconds(rank_tiny_seconds)
    total = _median_interval(seconds)
    latency = _median_interval(tiny_seconds)
    size = rendezvous.ranks.size
    # A ring all-reduce sends this many times the bytes over each rank's link.
    ring = 2 * (size - 1) / size
    facts = {
        "backend": program.facts().get("exchange_backend", ""),
        "ranks": size,
        "bytes": moved,
        "seconds": seconds,
        "rank_seconds": [statistics.median(values) for values in rank_seconds],
        "bus_bytes_per_second": ring * moved / statistics.median(seconds),
        "tiny": {"bytes": tiny_moved, "seconds": tiny_seconds},
        "latency_seconds": latency,
        "bandwidth_bytes_per_second": _bandwidth(ring * (moved - tiny_moved), total, latency),
    }
    return {"exchange": facts}


def _time_repeats(
    program: Program, rendezvous: Rendezvous, *, tiny: bool = False
) -> tuple[int, list[list[float]]]:
    """The bytes, and on rank 0 the seconds of every rank."""
    # The first exchange connects and allocates. It only tells how many repeats there is time for.
    moved, first_seconds = _time_once(program, rendezvous, tiny)
    affordable = math.ceil(SECONDS / first_seconds)
    count = rendezvous.broadcast(min(MOST_REPEATS, max(LEAST_REPEATS, affordable)))
    seconds = [_time_once(program, rendezvous, tiny)[1] for _ in range(count)]
    return moved, rendezvous.gather(seconds)


def _time_once(program: Program, rendezvous: Rendezvous, tiny: bool) -> tuple[int, float]:
    if not hasattr(program, "exchange"):
        raise Unsupported("This program exchanges nothing.")
    inspectable = cast(Inspectable, program)
    rendezvous.barrier()
    begin = time.perf_counter()
    moved = inspectable.exchange(tiny=tiny)
    return moved, max(time.perf_counter() - begin, LEAST_SECONDS)


def slowest_seconds(rank_seconds: Sequence[Sequence[float]]) -> list[float]:
    """The slowest rank's seconds in each repeat."""
    return [max(repeat) for repeat in zip(*rank_seconds, strict=True)]


def _median_interval(seconds: Sequence[float]) -> Interval:
    """The median and its 95 % interval between two order statistics (binomial distribution).

    An interval needs at least six repeats."""
    ascending = sorted(seconds)
    count = len(ascending)
    depth = 0
    tail = 0.5**count
    while tail <= TAIL:
        depth += 1
        tail += math.comb(count, depth) * 0.5**count
    interval: Interval = {"value": statistics.median(ascending), "low": None, "high": None}
    if depth > 0:
        interval["low"] = ascending[depth - 1]
        interval["high"] = ascending[-depth]
    return interval


def _bandwidth(volume: float, total: Interval, latency: Interval) -> Interval | None:
    """Of each link. None if the bytes took no longer than one number.

    The ends combine the worst ends of both medians, so the interval covers more than 95 %."""

    def rate(longer: float | None, shorter: float | None) -> float | None:
        if longer is None or shorter is None or longer <= shorter:
            return None
        return volume / (longer - shorter)

    value = rate(total["value"], latency["value"])
    if value is None:
        return None
    return {
        "value": value,
        "low": rate(total["high"], latency["low"]),
        "high": rate(total["low"], latency["high"]),
    }
