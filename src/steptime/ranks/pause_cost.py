"""What a wait costs the step behind it: caches grow cold and a core falls asleep while a rank waits for the others.

Measured where ranks exchange nothing, for the law of communication: a slow link costs a step more than the wait."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

from steptime.core.case import Case
from steptime.ranks.collectives import slowest
from steptime.ranks.rendezvous import Rendezvous

PAUSES_SECONDS = (0.0, 0.001, 0.004, 0.016, 0.064)
STEPS = 5  # of a block, each behind a pause of that length
MOST_TURNS = 5  # of blocks, one of each pause
SECONDS = 4.0  # for all turns together; where one takes longer, nothing is measured


def waits(program: Any, rendezvous: Rendezvous, case: Case) -> dict[str, Any]:
    """As findings of the first rank. A GPU waits in its own way, which no pause of the host is."""
    if (case.phase, case.exchange, case.device) != ("training", "independent", "cpu"):
        return {}
    turn_seconds = STEPS * sum(pause + _behind(program, 0) for pause in PAUSES_SECONDS)
    count = rendezvous.agree(min(MOST_TURNS, math.floor(SECONDS / turn_seconds)))
    each = rendezvous.gather(
        [[_block(program, rendezvous, pause) for pause in PAUSES_SECONDS] for _ in range(count)]
    )
    if not count or not each:
        return {}
    turns = [slowest(ranks) for ranks in zip(*each, strict=True)]
    return {"waiting": {"pauses_seconds": PAUSES_SECONDS, "turns": turns}}


def _block(program: Any, rendezvous: Rendezvous, pause: float) -> float:
    """Seconds of its typical step. All ranks wait at once, and compute at once."""
    rendezvous.agree(None)
    return statistics.median(_behind(program, pause) for _ in range(STEPS))


def _behind(program: Any, pause: float) -> float:
    if pause:
        time.sleep(pause)
    begin = time.perf_counter()
    program.step()
    program.wait()
    return time.perf_counter() - begin
