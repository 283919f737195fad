"""What a pause costs the step after it: while a rank waits, caches go cold and its core sleeps.

Measured on ranks that exchange nothing, for the communication model of scaling: a slow link
costs a step more than the wait itself."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

from steptime.core.case import Case
from steptime.core.program import Program
from steptime.ranks.collectives import slowest_seconds
from steptime.ranks.rendezvous import Rendezvous

PAUSES_SECONDS = (0.0, 0.001, 0.004, 0.016, 0.064)
# Steps of a block, each after a pause of the same length.
STEPS = 5
MOST_TURNS = 5  # each has one block for each pause
# Limit for all turns together. If a single turn takes longer, nothing is measured.
SECONDS = 4.0


def measure_pause_cost(program: Program, rendezvous: Rendezvous, case: Case) -> dict[str, Any]:
    """Findings of rank 0.

    Only on a CPU: a pause of the host is not how a GPU waits."""
    if (case.phase, case.exchange, case.device) != ("training", "independent", "cpu"):
        return {}
    pause_seconds = [pause + _step_seconds_after(program, 0) for pause in PAUSES_SECONDS]
    turn_seconds = STEPS * sum(pause_seconds)
    count = rendezvous.broadcast(min(MOST_TURNS, math.floor(SECONDS / turn_seconds)))
    turns = [_measure_turn(program, rendezvous) for _ in range(count)]
    rank_turns = rendezvous.gather(turns)
    if not count or not rank_turns:
        return {}
    slowest_turns = [slowest_seconds(ranks) for ranks in zip(*rank_turns, strict=True)]
    return {"pause_cost": {"pauses_seconds": PAUSES_SECONDS, "turns": slowest_turns}}


def _measure_turn(program: Program, rendezvous: Rendezvous) -> list[float]:
    """Seconds of a typical step after each pause. All ranks pause and compute at the same time."""
    medians = []
    for pause in PAUSES_SECONDS:
        rendezvous.barrier()
        seconds = [_step_seconds_after(program, pause) for _ in range(STEPS)]
        medians.append(statistics.median(seconds))
    return medians


def _step_seconds_after(program: Program, pause: float) -> float:
    if pause:
        time.sleep(pause)
    begin = time.perf_counter()
    program.step()
    program.wait()
    return time.perf_counter() - begin
