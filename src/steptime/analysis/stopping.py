"""When a case has been measured often enough, and how its next process should measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from steptime.analysis.estimates import typical_time
from steptime.analysis.process import Process, measured_processes
from steptime.core.format import percent
from steptime.core.measurement import THERMAL_REASONS
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Record

# Below six processes no signed-rank interval reaches 95 %.
FIRST_LOOK = 6
GROWTH = 1.35
# Processes from which the variances are estimated.
PILOT = 3
# A process may measure this many times as long as it took to start.
STARTS_WORTH = 3.0
THERMAL_SHARE = 0.05
CLOCK_JUMP = 0.01
SET_ASIDE_SHARE = 0.25


def planned_looks(protocol: Protocol) -> list[int]:
    """6, 8, 11, 15, 20, 27, 36 processes, within the protocol's limits.

    Presets begin at 8. If 30 % of the processes have a second level, six processes all miss it in
    12 % of sessions, eight in 6 %. The coverage of the interval holds for these looks only: more
    of them would lower it."""
    counts = []
    look = float(FIRST_LOOK)
    while round(look) < protocol.processes_most:
        counts.append(round(look))
        look *= GROWTH
    return [n for n in counts if n >= protocol.processes_least] + [protocol.processes_most]


def is_enough(
    count: int, half_width: float | None, protocol: Protocol, *, elapsed_seconds: float = 0.0
) -> bool:
    """The target is met at a look, the most processes have run, or the budget is spent.

    `half_width` is that of the printed interval; None if there is none."""
    if count < protocol.processes_least:
        return False
    if count >= protocol.processes_most or elapsed_seconds >= protocol.budget_seconds:
        return True
    if count not in planned_looks(protocol):
        return False
    return half_width is not None and half_width <= protocol.target


def wants_more(record: Record) -> bool:
    """Whether another process of this case is worth starting. Failures are not looked at."""
    if not record.attempts:
        return True
    processes = counted_processes(record.attempts)
    half_width = typical_time(processes).half_width if processes else None
    spent = sum(elapsed_seconds(attempt) for attempt in record.attempts)
    protocol = record.last.protocol
    return not is_enough(len(processes), half_width, protocol, elapsed_seconds=spent)


def elapsed_seconds(attempt: Attempt) -> float:
    """From the start of the process to its end, start-up included."""
    if attempt.ended:
        ended = datetime.fromisoformat(attempt.ended)
        return (ended - datetime.fromisoformat(attempt.started)).total_seconds()
    measurement = attempt.measurement
    if measurement is None:
        return 0.0
    measured = (measurement.stamps[-1] - measurement.stamps[0]) / 1e9
    return measured + sum(measurement.starts.values())


def next_protocol(record: Record) -> Protocol:
    """Later processes start from the largest cut so far.

    The first three processes decide how many steps each later one measures."""
    protocol = record.last.protocol
    processes = measured_processes(record.attempts)
    if not processes:
        return protocol
    largest_cut = max(process.measurement.cut for process in processes)
    steps = protocol.steps
    if steps == 0 and len(processes) >= PILOT:
        steps = steps_per_process(processes[:PILOT], protocol)
    warmup_start = max(protocol.warmup_start, largest_cut)
    return replace(protocol, warmup_start=warmup_start, steps=steps)


def steps_per_process(pilot: Sequence[Process], protocol: Protocol) -> int:
    """Kalibera and Jones (2013): repeat at the level that varies, weighed by its cost."""
    means = np.array([process.mean for process in pilot])
    step_cost = float(means.mean())
    start_cost = float(np.mean([_start_seconds(process) for process in pilot]))
    within = float(np.mean([_long_run_variance(process) for process in pilot]))
    steps = float(np.mean([process.steps for process in pilot]))
    between = float(means.var(ddof=1)) - within / steps
    best = best_repetitions(start_cost / step_cost, within, between)
    most = STARTS_WORTH * start_cost / step_cost
    least = max(protocol.least_steps, protocol.least_seconds / step_cost)
    return math.ceil(max(least, min(best, most)))


def best_repetitions(cost_ratio: float, within: float, between: float) -> float:
    """Cheapest number of repetitions inside one unit, from the variances within and between units.

    `cost_ratio` is the cost of starting a unit over that of one repetition."""
    return math.sqrt(cost_ratio * within / between) if between > 0 else math.inf


def _start_seconds(process: Process) -> float:
    """What another process costs before its first kept step."""
    kept = float(process.step_seconds.sum()) * process.measurement.group
    return max(0.0, elapsed_seconds(process.attempt) - kept)


def _long_run_variance(process: Process) -> float:
    """Per step: the limit of the number of steps times the variance of their mean."""
    inflation = len(process.step_seconds) / process.effective_samples
    return float(np.var(process.step_seconds)) * process.measurement.group * inflation


def counted_processes(attempts: Iterable[Attempt]) -> list[Process]:
    """Processes that measured and were not set aside."""
    processes = measured_processes(attempts)
    reasons = set_aside(processes)
    return [process for process in processes if process.attempt.id not in reasons]


def set_aside(processes: Sequence[Process]) -> dict[str, str]:
    """Attempts that do not count, with the reason: at most a quarter of all.

    Their time is never the reason."""
    reasons = {}
    for process in processes:
        reason = _why_disqualified(process)
        if reason:
            reasons[process.attempt.id] = reason
    most = int(SET_ASIDE_SHARE * len(processes))
    return dict(list(reasons.items())[:most])


def _why_disqualified(process: Process) -> str | None:
    gpu_states = [block.gpu for block in process.blocks if block.gpu is not None]
    hot = sum(bool(int(state.get("reasons", 0)) & THERMAL_REASONS) for state in gpu_states)
    if gpu_states and hot > THERMAL_SHARE * len(gpu_states):
        return f"the GPU slowed down by itself in {hot} of {len(gpu_states)} blocks"
    swap_ins = sum(block.swap_ins or 0 for block in process.blocks)
    if swap_ins:
        return f"{swap_ins} pages were read back from swap"
    drift = process.measurement.clock.get("drift") or 0.0
    if abs(drift) > CLOCK_JUMP:
        return f"its clock and the system's moved apart by {percent(drift)}"
    return None
