"""How long cases will take: from what the same case, or one like it, took before; else from the arithmetic."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cache
from math import log
from typing import Any

from steptime.core.case import SETTINGS, Case
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt

START_SECONDS = {"numpy": 0.5}
OTHER_START_SECONDS = 3.0  # a fresh process that imports a framework
BUILD_SECONDS = {
    "eager": 0.0,
    "graph": 3.0,
    "session": 3.0,
}  # a graph is put together; all other modes compile
COMPILE_SECONDS = 20.0
PILOT_STEPS = 5  # the first one, and those that choose the group
# FLOP/s where no peak of this machine is known: slow for their kind, since a wait that ends early annoys nobody.
CPU_SPEED, REFERENCE_SPEED, GPU_SPEED = (
    20e9,
    1e9,
    5e12,
)  # of each CPU; of the float64 reference; of a GPU
SHARE_OF_PEAK = 0.25  # what ordinary networks reach
Peaks = dict[str, dict[str, float]]
"""FLOP/s by device and precision."""


NO_MATTER = (
    "trial",
    "seed",
    "weights",
    "node_type",
    "staging",
    "interconnect",
)  # settings that change no step
UNMOVED: dict[str, Any] = {f.name: f.default for f in fields(Case) if f.name in NO_MATTER}
ALIKE = (
    "workload",
    "framework",
    "mode",
    "device",
)  # what a case must share with another to tell of it


@dataclass(frozen=True)
class Ran:
    """What one process of a case took, and by which protocol."""

    case: Case
    protocol: Protocol
    seconds: float


Past = dict[tuple[str, ...], list[Ran]]
"""By what cases must share."""


@dataclass(frozen=True)
class Estimate:
    """All processes of one case: at least, and at most when the interval stays wide."""

    least_seconds: float
    most_seconds: float
    like: Case | None = None  # the stored case that it was learned from
    differs: tuple[str, ...] = ()  # in these settings

    @property
    def source(self) -> str:
        return "guess" if self.like is None else "similar" if self.differs else "history"


def history(attempts: Iterable[Attempt]) -> Past:
    """Every case that was measured, with the median of its processes."""
    import statistics  # slow to import, and help does not need it

    found: dict[Case, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.measurement is not None and attempt.ended and not attempt.pair:
            found.setdefault(attempt.case, []).append(attempt)
    past: Past = {}
    for case, tried in found.items():
        newest = tried[-1].protocol
        seconds = statistics.median(
            _seconds(attempt) for attempt in tried if attempt.protocol.preset == newest.preset
        )
        past.setdefault(_shared(case), []).append(Ran(case, newest, seconds))
    return past


def estimate(case: Case, protocol: Protocol, past: Past, peaks: Peaks | None = None) -> Estimate:
    """A stored case tells how far off the guess is, so a smaller batch or another preset can be foretold from it."""
    one = _guess(case, protocol, step_seconds(case, peaks or {}))
    ran = min(past.get(_shared(case), ()), key=lambda ran: _distance(case, ran.case), default=None)
    if ran is not None:
        one *= ran.seconds / _guess(ran.case, ran.protocol, step_seconds(ran.case, peaks or {}))
    least = protocol.processes_least * one
    most = min(protocol.processes_most * one, max(protocol.budget_seconds, least))
    return Estimate(
        least, most, ran.case if ran else None, differing(case, ran.case) if ran else ()
    )


def differing(one: Case, other: Case) -> tuple[str, ...]:
    return tuple(
        name
        for name in SETTINGS
        if name not in NO_MATTER and getattr(one, name) != getattr(other, name)
    )


def _shared(case: Case) -> tuple[str, ...]:
    return tuple(getattr(case, name) for name in ALIKE)


def _distance(case: Case, other: Case) -> tuple[int, float]:
    """Few settings apart first, then the batch that is nearest."""
    return len(differing(case, other)), abs(log(case.batch_size / other.batch_size))


def _seconds(attempt: Attempt) -> float:
    return (
        datetime.fromisoformat(attempt.ended) - datetime.fromisoformat(attempt.started)
    ).total_seconds()


def step_seconds(case: Case, peaks: Peaks) -> float:
    """Rough: the network's arithmetic at the speed that such a device has."""
    return max(_flops(replace(case, **UNMOVED)), 1.0) / speed(case, peaks)


@cache  # a plan of thousands of cases has few kinds of steps
def _flops(case: Case) -> float:
    from steptime import (
        workloads,  # reads what installed packages offer, which takes tens of milliseconds
    )

    found: float = workloads.load(case.workload).describe(case)["flops_per_step"]
    return found


def speed(case: Case, peaks: Peaks) -> float:
    if case.framework == "numpy":
        return REFERENCE_SPEED
    peak = peaks.get(case.device, {}).get(case.precision)
    if peak is not None:
        return SHARE_OF_PEAK * peak
    return (
        CPU_SPEED * (case.threads or len(os.sched_getaffinity(0)))
        if case.device == "cpu"
        else GPU_SPEED
    )


def _guess(case: Case, protocol: Protocol, step: float) -> float:
    """Of one process. What warm-up leaves over counts as measurement, so slow steps are not run twice over."""
    start = START_SECONDS.get(case.framework, OTHER_START_SECONDS)
    compiling = BUILD_SECONDS.get(case.mode, COMPILE_SECONDS)
    patience = 1 if case.device == "cpu" else 2
    most = min(patience * protocol.warmup_most_seconds, protocol.budget_seconds / 4)
    steps = max(min(protocol.warmup_steps, most / step), protocol.least_steps) + PILOT_STEPS
    return (
        start
        + compiling
        + max(patience * protocol.warmup_seconds + protocol.least_seconds, steps * step)
    )
