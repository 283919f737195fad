"""What the exchange of a step costs by itself: the same bytes among the same ranks, with nothing computed beside it.

One number beside them tells latency from bandwidth: seconds = latency + bytes / bandwidth."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import Any

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.ranks.rendezvous import Rendezvous

REPEATS = (3, 20)
SECONDS = 2.0  # for all of them together, where that allows the least
TAIL = 0.025  # an interval leaves at most so much out on each side
Interval = dict[str, float | None]
"""`value`, `low` and `high`. No end: too few repeats for it, or nothing limits it on that side."""


def lacking(program: Any, case: Case) -> str:
    """Why its ranks do not do what the case says; empty: they do. Only training has something to exchange."""
    if case.phase != "training" or case.exchange == "independent" or hasattr(program, "exchange"):
        return ""
    return f"{case.framework} has no exchange={case.exchange} here; use exchange=independent."


def exchanges(program: Any, rendezvous: Rendezvous) -> dict[str, Any]:
    """As findings of the first rank. An exchange takes as long as its slowest rank."""
    try:
        moved, each = _several(program, rendezvous)
        tiny, each_tiny = _several(program, rendezvous, tiny=True)
    except Unsupported:
        return {}
    if not each:
        return {}
    seconds, tiny_seconds = slowest(each), slowest(each_tiny)
    size = rendezvous.ranks.size
    ring = 2 * (size - 1) / size  # times the bytes goes over each rank's link
    whole, latency = _middle(seconds), _middle(tiny_seconds)
    found = {
        "backend": program.facts().get("exchange_backend", ""),
        "ranks": size,
        "bytes": moved,
        "seconds": seconds,
        "rank_seconds": [statistics.median(own) for own in each],
        "bus_bytes_per_second": ring * moved / statistics.median(seconds),
        "tiny": {"bytes": tiny, "seconds": tiny_seconds},
        "latency_seconds": latency,
        "bandwidth_bytes_per_second": _bandwidth(ring * (moved - tiny), whole, latency),
    }
    return {"exchange": found}


def _several(
    program: Any, rendezvous: Rendezvous, *, tiny: bool = False
) -> tuple[int, list[list[float]]]:
    """The bytes, and on the first rank every rank's seconds."""
    moved, first_seconds = _once(
        program, rendezvous, tiny
    )  # connects and allocates: says how many there is time for
    least, most = REPEATS
    count = rendezvous.agree(min(most, max(least, math.ceil(SECONDS / first_seconds))))
    return moved, rendezvous.gather([_once(program, rendezvous, tiny)[1] for _ in range(count)])


def _once(program: Any, rendezvous: Rendezvous, tiny: bool) -> tuple[int, float]:
    exchange = getattr(program, "exchange", None)
    if exchange is None:
        raise Unsupported("This program exchanges nothing.")
    rendezvous.agree(None)
    begin = time.perf_counter()
    moved: int = exchange(tiny=tiny)
    return moved, max(time.perf_counter() - begin, 1e-9)


def slowest(each: Sequence[Sequence[float]]) -> list[float]:
    return [max(ranks) for ranks in zip(*each, strict=True)]


def _middle(seconds: Sequence[float]) -> Interval:
    """The median, and the order statistics that hold it with 95 % (binomial); six repeats are the fewest for that."""
    ascending, count = sorted(seconds), len(seconds)
    depth, tail = 0, 0.5**count
    while tail <= TAIL:
        depth += 1
        tail += math.comb(count, depth) * 0.5**count
    low, high = (ascending[depth - 1], ascending[-depth]) if depth else (None, None)
    return {"value": statistics.median(ascending), "low": low, "high": high}


def _bandwidth(volume: float, whole: Interval, latency: Interval) -> Interval | None:
    """Of each link. Its ends are those of both medians at their worst, so it holds the truth more often than they do.
    None: the bytes took no longer than one number."""

    def rate(longer: float | None, shorter: float | None) -> float | None:
        if longer is None or shorter is None or longer <= shorter:
            return None
        return volume / (longer - shorter)

    value = rate(whole["value"], latency["value"])
    ends = {"low": rate(whole["high"], latency["low"]), "high": rate(whole["low"], latency["high"])}
    return None if value is None else {"value": value, **ends}
