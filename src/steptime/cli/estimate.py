"""How long cases will take: from what the same case took before, else from the protocol and the arithmetic."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from steptime.core.case import Case
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt

START_SECONDS = {"numpy": 0.5}
OTHER_START_SECONDS = 3.0  # a fresh process that imports a framework
BUILD_SECONDS = {"eager": 0.0, "graph": 3.0, "session": 3.0}  # a graph is put together; all other modes compile
COMPILE_SECONDS = 20.0
PILOT_STEPS = 5  # the first one, and those that choose the group
# FLOP/s where no roof of this machine is known: slow for their kind, since a wait that ends early annoys nobody.
CPU_SPEED, REFERENCE_SPEED, GPU_SPEED = 20e9, 1e9, 5e12  # of each CPU; of the float64 reference; of a GPU
SHARE_OF_ROOF = 0.25  # what ordinary networks reach
Roofs = dict[str, dict[str, float]]
"""FLOP/s by device and precision."""


@dataclass(frozen=True)
class Estimate:
    """All processes of one case: at least, and at most when the interval stays wide."""

    least_seconds: float
    most_seconds: float
    from_history: bool


def history(attempts: Iterable[Attempt]) -> dict[str, float]:
    """Seconds of one process, by the case's key."""
    import statistics  # slow to import, and help does not need it

    seconds: dict[str, list[float]] = {}
    for attempt in attempts:
        if attempt.measurement is not None and attempt.ended and not attempt.pair:
            taken = datetime.fromisoformat(attempt.ended) - datetime.fromisoformat(attempt.started)
            seconds.setdefault(attempt.case.key, []).append(taken.total_seconds())
    return {key: statistics.median(values) for key, values in seconds.items()}


def estimate(case: Case, protocol: Protocol, past: dict[str, float], roofs: Roofs | None = None) -> Estimate:
    one = past.get(case.key) or _guess(case, protocol, step_seconds(case, roofs or {}))
    least = protocol.processes_least * one
    most = min(protocol.processes_most * one, max(protocol.budget_seconds, least))
    return Estimate(least, most, case.key in past)


def step_seconds(case: Case, roofs: Roofs) -> float:
    """Rough: the network's arithmetic at the speed that such a device has."""
    from steptime import workloads  # reads what installed packages offer, which takes tens of milliseconds

    flops: float = workloads.load(case.workload).describe(case)["flops_per_step"]
    return max(flops, 1.0) / speed(case, roofs)


def speed(case: Case, roofs: Roofs) -> float:
    if case.framework == "numpy":
        return REFERENCE_SPEED
    roof = roofs.get(case.device, {}).get(case.precision)
    if roof is not None:
        return SHARE_OF_ROOF * roof
    return CPU_SPEED * (case.threads or len(os.sched_getaffinity(0))) if case.device == "cpu" else GPU_SPEED


def _guess(case: Case, protocol: Protocol, step: float) -> float:
    """Of one process. What warm-up leaves over counts as measurement, so slow steps are not run twice over."""
    start = START_SECONDS.get(case.framework, OTHER_START_SECONDS)
    compiling = BUILD_SECONDS.get(case.mode, COMPILE_SECONDS)
    patience = 1 if case.device == "cpu" else 2
    most = min(patience * protocol.warmup_most_seconds, protocol.budget_seconds / 4)
    steps = max(min(protocol.warmup_steps, most / step), protocol.least_steps) + PILOT_STEPS
    return start + compiling + max(patience * protocol.warmup_seconds + protocol.least_seconds, steps * step)
