"""What the exchange of a step costs by itself: the same bytes among the same ranks, with nothing computed beside it."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.engine.council import Council

REPEATS = (3, 20)
SECONDS = 2.0  # for all of them together, where that allows the least


def lacking(program: Any, case: Case) -> str:
    """Why its ranks do not do what the case says; empty: they do. Only training has something to exchange."""
    if case.phase != "training" or case.exchange == "independent" or hasattr(program, "exchange"):
        return ""
    return f"{case.framework} has no exchange={case.exchange} here; use exchange=independent."


def exchanges(program: Any, council: Council) -> dict[str, Any]:
    """As findings of the first rank. An exchange takes as long as its slowest rank."""
    try:
        moved, first_seconds = _once(program, council)  # connects and allocates: says how many there is time for
    except Unsupported:
        return {}
    least, most = REPEATS
    count = council.agree(min(most, max(least, math.ceil(SECONDS / first_seconds))))
    each = council.gather([_once(program, council)[1] for _ in range(count)])
    if not each:
        return {}
    seconds, size = [max(ranks) for ranks in zip(*each, strict=True)], council.ranks.size
    told = {"backend": program.facts().get("exchange_backend", ""), "ranks": size, "bytes": moved, "seconds": seconds}
    ring = 2 * (size - 1) / size  # times the bytes goes over each rank's link
    return {"exchange": {**told, "bus_bytes_per_second": ring * moved / statistics.median(seconds)}}


def _once(program: Any, council: Council) -> tuple[int, float]:
    exchange = getattr(program, "exchange", None)
    if exchange is None:
        raise Unsupported("This program exchanges nothing.")
    council.agree(None)
    begin = time.perf_counter()
    moved: int = exchange()
    return moved, max(time.perf_counter() - begin, 1e-9)
