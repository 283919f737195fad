"""Estimate how long cases will take: from what a similar case took before, else from FLOPs."""

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
# To build a graph takes a while; all modes that are not here compile.
BUILD_SECONDS = {
    "eager": 0.0,
    "graph": 3.0,
    "session": 3.0,
}
COMPILE_SECONDS = 20.0
LEAST_STEPS = 5  # run even if the budget is spent: two of warm-up, and three that are kept
PILOT_STEPS = 5  # the first step, and those that choose the group
# FLOP/s if no peak of this machine is known. They are low, because a run that ends early annoys
# nobody.
CPU_SPEED = 20e9  # of each CPU
REFERENCE_SPEED = 1e9  # of the reference, which computes in float64
GPU_SPEED = 5e12
SHARE_OF_PEAK = 0.25  # what ordinary networks reach
# Settings that do not change the time of a step.
IRRELEVANT = ("trial", "seed", "weights", "node_type", "staging", "interconnect")
IRRELEVANT_DEFAULTS: dict[str, Any] = {
    f.name: f.default for f in fields(Case) if f.name in IRRELEVANT
}
# Settings that two cases must share so that one tells about the other.
SHARED = ("workload", "framework", "mode", "device")
Peaks = dict[str, dict[str, float]]
"""FLOP/s by device and precision."""


@dataclass(frozen=True)
class PastRun:
    """What one process of a case took, and by which protocol."""

    case: Case
    protocol: Protocol
    seconds: float


History = dict[tuple[str, ...], list[PastRun]]
"""By the values of the settings that cases must share."""


@dataclass(frozen=True)
class Estimate:
    """All processes of one case: at least, and at most if the interval stays wide."""

    least_seconds: float
    most_seconds: float
    like: Case | None = None  # the stored case that it was learned from
    differs: tuple[str, ...] = ()  # in these settings

    @property
    def source(self) -> str:
        if self.like is None:
            return "guess"
        return "similar" if self.differs else "history"


def history(attempts: Iterable[Attempt]) -> History:
    """Every case that was measured, with the median time of its processes."""
    # Slow to import, and help does not need it.
    import statistics

    measured: dict[Case, list[Attempt]] = {}
    for attempt in attempts:
        # A resident of a comparison also waits for its partner, so its time tells nothing.
        if attempt.measurement is not None and attempt.ended and not attempt.pair:
            measured.setdefault(attempt.case, []).append(attempt)
    runs: History = {}
    for case, case_attempts in measured.items():
        protocol = case_attempts[-1].protocol
        seconds = [
            _elapsed_seconds(attempt)
            for attempt in case_attempts
            if attempt.protocol.preset == protocol.preset
        ]
        run = PastRun(case, protocol, statistics.median(seconds))
        runs.setdefault(_shared_settings(case), []).append(run)
    return runs


def estimate(case: Case, protocol: Protocol, past: History, peaks: Peaks | None = None) -> Estimate:
    """A past run shows how far off the guess is, which corrects the guess for a similar case."""
    peaks = peaks or {}
    seconds = _guess_process_seconds(case, protocol, peaks)
    like = None
    differences: tuple[str, ...] = ()
    runs = past.get(_shared_settings(case), [])
    if runs:
        run = min(runs, key=lambda run: _distance(case, run.case))
        seconds *= run.seconds / _guess_process_seconds(run.case, run.protocol, peaks)
        like = run.case
        differences = differing_settings(case, run.case)
    least = protocol.processes_least * seconds
    most = min(protocol.processes_most * seconds, max(protocol.budget_seconds, least))
    return Estimate(least, most, like, differences)


def differing_settings(case: Case, other: Case) -> tuple[str, ...]:
    relevant = (name for name in SETTINGS if name not in IRRELEVANT)
    return tuple(name for name in relevant if getattr(case, name) != getattr(other, name))


def _shared_settings(case: Case) -> tuple[str, ...]:
    return tuple(getattr(case, name) for name in SHARED)


def _distance(case: Case, other: Case) -> tuple[int, float]:
    """Few differing settings first, then the nearest batch size."""
    batch_distance = abs(log(case.batch_size / other.batch_size))
    return len(differing_settings(case, other)), batch_distance


def _elapsed_seconds(attempt: Attempt) -> float:
    started = datetime.fromisoformat(attempt.started)
    ended = datetime.fromisoformat(attempt.ended)
    return (ended - started).total_seconds()


def step_seconds(case: Case, peaks: Peaks) -> float:
    """Rough: the network's FLOPs at the speed that such a device has."""
    # Cases that differ only in irrelevant settings share one cached number.
    return max(_flops_per_step(replace(case, **IRRELEVANT_DEFAULTS)), 1.0) / speed(case, peaks)


@cache
def _flops_per_step(case: Case) -> float:
    """Cached: a plan of thousands of cases has few different steps."""
    # Imported late: it reads what installed packages offer, which takes tens of milliseconds.
    from steptime import workloads

    flops: float = workloads.describe(case)["flops_per_step"]
    return flops


def speed(case: Case, peaks: Peaks) -> float:
    if case.framework == "numpy":
        return REFERENCE_SPEED
    peak = peaks.get(case.device, {}).get(case.precision)
    if peak is not None:
        return SHARE_OF_PEAK * peak
    if case.device == "cpu":
        return CPU_SPEED * (case.threads or len(os.sched_getaffinity(0)))
    return GPU_SPEED


def _guess_process_seconds(case: Case, protocol: Protocol, peaks: Peaks) -> float:
    step = step_seconds(case, peaks)
    start = START_SECONDS.get(case.framework, OTHER_START_SECONDS)
    build = BUILD_SECONDS.get(case.mode, COMPILE_SECONDS)
    patience = 1 if case.device == "cpu" else 2
    most_warmup = min(patience * protocol.warmup_most_seconds, protocol.budget_seconds / 4)
    warmup_steps = min(protocol.warmup_steps, most_warmup / step)
    # What warm-up leaves over counts as measurement, so slow steps are not run twice.
    share_seconds = protocol.budget_seconds / protocol.processes_least
    least_steps = min(protocol.least_steps, max(LEAST_STEPS, share_seconds / step))
    steps = max(warmup_steps, least_steps) + PILOT_STEPS
    least_seconds = patience * protocol.warmup_seconds + protocol.least_seconds
    return start + build + max(least_seconds, steps * step)
