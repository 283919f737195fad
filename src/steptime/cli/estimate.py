"""How long cases will take: from what the same case took before, else from the protocol's numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from steptime.core.case import Case
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt

START_SECONDS = {"numpy": 0.5}
OTHER_START_SECONDS = 3.0  # a fresh process that imports a framework
COMPILE_SECONDS = 20.0


@dataclass(frozen=True)
class Estimate:
    """All processes of one case: at least, and at most when the interval stays wide."""

    least_seconds: float
    most_seconds: float
    from_history: bool


def history(attempts: Iterable[Attempt]) -> dict[str, float]:
    """Seconds of one process, by the case's key."""
    seconds: dict[str, list[float]] = {}
    for attempt in attempts:
        if attempt.measurement is not None and attempt.ended and not attempt.pair:
            taken = datetime.fromisoformat(attempt.ended) - datetime.fromisoformat(attempt.started)
            seconds.setdefault(attempt.case.key, []).append(taken.total_seconds())
    return {key: statistics.median(values) for key, values in seconds.items()}


def estimate(case: Case, protocol: Protocol, past: dict[str, float]) -> Estimate:
    one = past.get(case.key) or _guess(case, protocol)
    least = protocol.processes_least * one
    most = min(protocol.processes_most * one, max(protocol.budget_seconds, least))
    return Estimate(least, most, case.key in past)


def _guess(case: Case, protocol: Protocol) -> float:
    start = START_SECONDS.get(case.framework, OTHER_START_SECONDS)
    compiling = COMPILE_SECONDS if case.mode != "eager" else 0.0
    warmup = protocol.warmup_seconds * (1 if case.device == "cpu" else 2)
    return start + compiling + warmup + protocol.least_seconds
