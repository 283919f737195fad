"""When a case has been measured often enough, and how its next process should measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from steptime.analysis import intervals
from steptime.analysis.process import Process, measured_processes
from steptime.analysis.quantiles import Numbers
from steptime.core.format import percent
from steptime.core.measurement import Measurement
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Record

FIRST_LOOK, GROWTH = 6, 1.35
PILOT = 3
STARTS_WORTH = 3.0  # a process may measure this many times as long as it took to start
THERMAL_REASONS = (
    0x8 | 0x20 | 0x40 | 0x80
)  # NVML: hardware slowdown, software thermal, hardware thermal, power brake
THERMAL_SHARE = 0.05
CLOCK_JUMP = 0.01
SET_ASIDE_SHARE = 0.25


def looks(protocol: Protocol) -> list[int]:
    """6, 8, 11, 15, 20, 27, 36: looking more often, or at a larger alpha, would promise more than it keeps."""
    numbers, look = [], float(FIRST_LOOK)
    while round(look) < protocol.processes_most:
        numbers.append(round(look))
        look *= GROWTH
    return [n for n in numbers if n >= protocol.processes_least] + [protocol.processes_most]


def stops(typical_seconds: Numbers, protocol: Protocol, *, elapsed_seconds: float = 0.0) -> bool:
    """Enough processes: the target is met at a look, the most there may be have run, or the budget is spent."""
    count = len(typical_seconds)
    if count < protocol.processes_least:
        return False
    if count >= protocol.processes_most or elapsed_seconds >= protocol.budget_seconds:
        return True
    interval = (
        intervals.signed_rank(typical_seconds, protocol.look_alpha)
        if count in looks(protocol)
        else None
    )
    return interval is not None and interval.half_width <= protocol.target


def wants_more(record: Record) -> bool:
    """Whether the case needs another process, by its measurements alone. Failures: `core.cause`."""
    if not record.attempts:
        return True
    parts = measured_processes(record.attempts)
    aside = set_aside(parts)
    typical = np.array([part.typical for part in parts if part.attempt.id not in aside])
    spent = sum(elapsed_seconds(attempt) for attempt in record.attempts)
    return not stops(typical, record.last.protocol, elapsed_seconds=spent)


def elapsed_seconds(attempt: Attempt) -> float:
    """From the start of the process to its end; start-up is paid for too."""
    if attempt.ended:
        return (
            datetime.fromisoformat(attempt.ended) - datetime.fromisoformat(attempt.started)
        ).total_seconds()
    if attempt.measurement is None:
        return 0.0
    return _measured_seconds(attempt.measurement) + sum(attempt.measurement.starts.values())


def _measured_seconds(measurement: Measurement) -> float:
    return (measurement.stamps[-1] - measurement.stamps[0]) / 1e9


def next_protocol(record: Record) -> Protocol:
    """Later processes start from the largest cut so far; the first three decide how long each one measures."""
    protocol = record.last.protocol
    parts = measured_processes(record.attempts)
    if not parts:
        return protocol
    start = max(protocol.warmup_start, *(part.measurement.cut for part in parts))
    steps = protocol.steps
    if steps == 0 and len(parts) >= PILOT:
        steps = steps_per_process(parts[:PILOT], protocol)
    return replace(protocol, warmup_start=start, steps=steps)


def steps_per_process(pilot: Sequence[Process], protocol: Protocol) -> int:
    """Kalibera and Jones (2013): repeat where the variance is, weighed by what a repetition costs."""
    means = np.array([part.mean for part in pilot])
    step_cost = float(means.mean())
    start_cost = float(np.mean([_start_seconds(part) for part in pilot]))
    within = float(np.mean([_long_run_variance(part) for part in pilot]))
    steps = float(np.mean([len(part.step_seconds) * part.measurement.group for part in pilot]))
    between = float(means.var(ddof=1)) - within / steps
    best = math.sqrt(start_cost / step_cost * within / between) if between > 0 else math.inf
    most = STARTS_WORTH * start_cost / step_cost
    least = max(protocol.least_steps, protocol.least_seconds / step_cost)
    return math.ceil(max(least, min(best, most)))


def _start_seconds(part: Process) -> float:
    """What a further process costs before its first kept step."""
    kept = float(part.step_seconds.sum()) * part.measurement.group
    return max(0.0, elapsed_seconds(part.attempt) - kept)


def _long_run_variance(part: Process) -> float:
    """Per step: what the variance of the mean times the number of steps tends to."""
    inflation = len(part.step_seconds) / part.effective_samples
    return float(np.var(part.step_seconds)) * part.measurement.group * inflation


def set_aside(parts: Sequence[Process]) -> dict[str, str]:
    """Attempts that do not count, with the reason: never their time, and at most a quarter of all."""
    reasons = {part.attempt.id: reason for part in parts if (reason := _disqualified(part))}
    return dict(list(reasons.items())[: int(SET_ASIDE_SHARE * len(parts))])


def _disqualified(part: Process) -> str | None:
    gpu = [block.gpu for block in part.blocks if block.gpu is not None]
    hot = sum(bool(int(state.get("reasons", 0)) & THERMAL_REASONS) for state in gpu)
    if gpu and hot > THERMAL_SHARE * len(gpu):
        return f"the GPU slowed down by itself in {hot} of {len(gpu)} blocks"
    if swapped := sum(block.swap_ins or 0 for block in part.blocks):
        return f"{swapped} pages were read back from swap"
    if abs(drift := part.measurement.clock.get("drift") or 0.0) > CLOCK_JUMP:
        return f"its clock and the system's moved apart by {percent(drift)}"
    return None
