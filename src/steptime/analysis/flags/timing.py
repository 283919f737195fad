"""Flags about the timing itself, one rule each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc

from steptime.analysis.estimates import ordered_medians, typical_time
from steptime.analysis.flags.steadiness import (
    Trend,
    common_trend,
    drift,
    gap_between_groups,
    level_shift,
    memory,
    neighbour_correlation_p,
)
from steptime.analysis.process import Process
from steptime.analysis.quantiles import PERCENTILES, Numbers, steps_needed
from steptime.analysis.statistics import recorded_checks, relative_spread
from steptime.analysis.stopping import CLOCK_JUMP, FIRST_LOOK
from steptime.core.format import duration, percent

Processes = Sequence[Process]

# p-values: of the change in one process, of such changes in a record, of a change that processes
# share, of a session's order.
BLOCK_P = 0.01
RECORD_P = 0.005
COMMON_P = 0.003
SESSION_P = 0.02
# Relative changes below these do not matter.
DRIFT = 0.01
COMMON_DRIFT = 0.005
LEVEL = 0.02
# The mean over all processes may be smaller by this factor.
RECORD_SHARE = 0.5
# The number of the protocol that ended a process early, by what the process recorded.
CUT_SHORT = {"budget": "budget_seconds", "limit": "limit_seconds"}
GROUP_GAP = 0.01
UNSTABLE = 0.05
UNSTEADY_SHARE = 0.25
# A sample must take this many times as long as reading the clock.
CLOCK_COSTS = 200
STAMP_SHARE = 0.001
VIOLATIONS = 0.25
FORCED = 0.05
HOST_BOUND = 0.95
ASYNC_GAIN = 1.05
CLOCK_DRIFT = 0.001
FAST_CLOCKS = ("tsc", "arch_sys_counter")


def unsynchronised(processes: Processes) -> str | None:
    """The engine's self-check: work that is not waited for shows in block after block."""
    for process in processes:
        checks = process.measurement.checks
        name = f"in process {process.attempt.process}"
        disagreeing = checks.get("closure_violations", 0.0)
        if _in_several_blocks(disagreeing, process):
            blocks = f"{percent(disagreeing)} of the blocks {name}"
            median = percent(checks.get("closure_median", 0.0))
            return f"host and device disagree in {blocks}, by {median} in the median"
        draining = checks.get("drain_share_violations", 0.0)
        if _in_several_blocks(draining, process):
            blocks = f"{percent(draining)} of the blocks {name}"
            return f"steps return before they are done: {blocks} end in a long wait"
        forced = checks.get("forced_share", 0.0)
        if forced > FORCED:
            return f"after the wait {percent(forced)} of the work was still to be done {name}"
    return None


def _in_several_blocks(share: float, process: Process) -> bool:
    """In all blocks, or in more than one: a single block may be disturbed from outside."""
    return share > VIOLATIONS and (share == 1.0 or share * len(process.measurement.blocks) > 1.5)


def no_steady_state(processes: Processes) -> str | None:
    count = _unsteady_count(processes)
    if count <= UNSTEADY_SHARE * len(processes):
        return None
    return f"{_of_all(count, processes)} found no steady state"


def seldom_steady(processes: Processes) -> str | None:
    count = _unsteady_count(processes)
    if not 0 < count <= UNSTEADY_SHARE * len(processes):
        return None
    return f"{_of_all(count, processes)} found no steady state"


def _unsteady_count(processes: Processes) -> int:
    return sum(not process.measurement.steady for process in processes)


def _of_all(count: int, processes: Processes) -> str:
    return f"{count} of {len(processes)} processes"


def recompiled(processes: Processes) -> str | None:
    count = sum(block.compilations for process in processes for block in process.blocks)
    return f"something was compiled {count} times inside the kept steps" if count else None


def recompiled_before(processes: Processes) -> str | None:
    """The engine moved the cut past the compilation, once."""
    count = sum(process.measurement.checks.get("recompiled", 0) > 0 for process in processes)
    if not count:
        return None
    return f"{_of_all(count, processes)} compiled again after warm-up; the cut was moved past it"


def drifts(processes: Processes) -> str | None:
    trends = _trends(processes, drift)
    changes = _significant_changes(trends, DRIFT)
    if changes:
        count = _of_all(len(changes), processes)
        return f"{count} drift; {changes[0]} from the first third to the last"
    common = common_trend([change.trend for change in trends])
    if common is None or common.p >= COMMON_P or abs(common.change) <= COMMON_DRIFT:
        return None
    change = f"{100 * common.change:+.1f} % in the median (p = {common.p:.4f})"
    return f"processes drift alike: {change} from the first third to the last"


def level_shifts(processes: Processes) -> str | None:
    changes = _significant_changes(_trends(processes, level_shift), LEVEL)
    if not changes:
        return None
    worst = changes[0]
    stamps = worst.process.measurement.stamps
    sample = worst.process.points[worst.trend.position].first
    seconds = (stamps[sample] - stamps[0]) / 1e9
    count = _of_all(len(changes), processes)
    return (
        f"{count} change their level; {worst} at sample {sample}, {seconds:.2f} s after the first"
    )


class _Change(NamedTuple):
    process: Process
    trend: Trend

    def __str__(self) -> str:
        change = f"{100 * self.trend.change:+.1f} %"
        return f"process {self.process.attempt.process} by {change} (p = {self.trend.p:.4f})"


def _trends(processes: Processes, test: Callable[[Numbers, float], Trend | None]) -> list[_Change]:
    courses = []
    for process in processes:
        courses.append(np.array([point.seconds for point in process.points]))
    correlation = memory(courses)
    changes = []
    for process, course in zip(processes, courses, strict=True):
        trend = test(course, correlation)
        if trend is not None:
            changes.append(_Change(process, trend))
    return changes


def _significant_changes(changes: Sequence[_Change], least: float) -> list[_Change]:
    """The most significant first. Many processes are many tests, so single ones must be corrected.

    They count if the best one holds after the correction (Bonferroni), or if there are more of
    them than expected without any change (binomial); and if together they matter: a change in
    one of eight processes moves the result by an eighth of it."""
    large = [change for change in changes if abs(change.trend.change) > least]
    significant = [change for change in large if change.trend.p < BLOCK_P]
    effect = sum(abs(change.trend.change) for change in significant)
    if effect <= RECORD_SHARE * least * len(changes):
        return []
    significant.sort(key=lambda change: change.trend.p)
    one_is_enough = len(changes) * significant[0].trend.p < RECORD_P
    count_p = bdtrc(len(significant) - 1, len(changes), BLOCK_P)
    return significant if one_is_enough or count_p < RECORD_P else []


def _medians(processes: Processes) -> Numbers:
    return np.array([process.typical for process in processes])


def session_drift(processes: Processes) -> str | None:
    p = neighbour_correlation_p(ordered_medians(processes))
    if p >= SESSION_P:
        return None
    return f"neighbouring processes resemble each other (rank von Neumann test, p = {p:.4f})"


def unstable(processes: Processes) -> str | None:
    spread = relative_spread(_medians(processes)) or 0.0
    if spread <= UNSTABLE:
        return None
    return f"processes differ by {percent(spread)} (CV of {len(processes)} medians)"


def bimodal(processes: Processes) -> str | None:
    gap = gap_between_groups(_medians(processes))
    if gap is None or gap[1] - gap[0] <= GROUP_GAP * gap[0]:
        return None
    low, high = gap
    return f"two groups of processes: up to {duration(low)} and from {duration(high)}"


def few_processes(processes: Processes) -> str | None:
    if not 1 < len(processes) < FIRST_LOOK:
        return None
    return f"{len(processes)} processes: an interval across processes needs {FIRST_LOOK}"


def one_process(processes: Processes) -> str | None:
    return "variation between processes is unknown" if len(processes) == 1 else None


def too_few_samples(processes: Processes) -> str | None:
    # Groups of steps have no percentiles of single steps.
    if any(process.measurement.group > 1 for process in processes):
        return None
    count = sum(len(process.step_seconds) for process in processes)
    missing = []
    for percentile in PERCENTILES:
        needed = steps_needed(percentile)
        if needed > count:
            missing.append(f"p{percentile:g} needs {needed:,}")
    return f"{count} steps: {', '.join(missing)}" if missing else None


def target_missed(processes: Processes) -> str | None:
    protocol = processes[-1].attempt.protocol
    half_width = typical_time(processes).half_width
    if half_width is None or half_width <= protocol.target:
        return None
    reached = f"±{percent(half_width)} after {len(processes)} processes"
    return f"{reached}, the target is ±{percent(protocol.target)}"


def _sample_ns(process: Process) -> float:
    return process.typical * process.measurement.group * 1e9


def clock_coarse(processes: Processes) -> str | None:
    for process in processes:
        cost = process.measurement.clock.get("cost_ns") or 0
        sample_ns = _sample_ns(process)
        if process.measurement.device_ns is None and sample_ns < CLOCK_COSTS * cost:
            sample = duration(sample_ns / 1e9)
            return f"a sample of {sample} is under {CLOCK_COSTS} × the clock's {cost:.0f} ns"
    return None


def slow_clock(processes: Processes) -> str | None:
    sources = {process.measurement.clock.get("source") for process in processes}
    slow = sorted(str(source) for source in sources - {None, *FAST_CLOCKS})
    return f"the clock source is {', '.join(slow)}, not tsc" if slow else None


def _worst_clock_drift(processes: Processes) -> float:
    drifts = [process.measurement.clock.get("drift") or 0.0 for process in processes]
    return max((abs(float(drift)) for drift in drifts), default=0.0)


def clock_drift(processes: Processes) -> str | None:
    worst = _worst_clock_drift(processes)
    if not CLOCK_DRIFT < worst <= CLOCK_JUMP:
        return None
    return f"clock and system clock moved apart by {percent(worst)}"


def clock_wrong(processes: Processes) -> str | None:
    worst = _worst_clock_drift(processes)
    return f"clock and system clock moved apart by {percent(worst)}" if worst > CLOCK_JUMP else None


def harness_share(processes: Processes) -> str | None:
    """A stamp on the host, and an event if the device times itself."""
    worst = max(_stamp_ns(process) / _sample_ns(process) for process in processes)
    return f"stamping takes {percent(worst)} of a sample" if worst > STAMP_SHARE else None


def _stamp_ns(process: Process) -> float:
    measurement = process.measurement
    clock = measurement.clock
    stamp = float(clock.get("stamp_ns") or clock.get("cost_ns") or 0.0)
    if measurement.device_ns is None:
        return stamp
    return stamp + measurement.checks.get("event_cost_ns", 0.0)


def host_bound(processes: Processes) -> str | None:
    shares = recorded_checks(processes, "dispatch_share")
    share = float(np.median(shares)) if shares else 0.0
    if share < HOST_BOUND:
        return None
    return f"the host needs {percent(share)} of the time to give the device its work"


def async_gain(processes: Processes) -> str | None:
    ratios = recorded_checks(processes, "latency_ratio")
    ratio = float(np.median(ratios)) if ratios else 1.0
    if ratio <= ASYNC_GAIN:
        return None
    return f"waiting for each step would make it {ratio:.2f} × as long"


def cut_short(processes: Processes) -> str | None:
    """Processes that ran fewer steps than the protocol asks for, because their time was over."""
    reasons = []
    for process in processes:
        reason = process.measurement.facts.get("cut_short")
        if reason in CUT_SHORT:
            reasons.append(reason)
    if not reasons:
        return None
    reason = reasons[0]
    protocol = processes[0].attempt.protocol
    limit = getattr(protocol, CUT_SHORT[reason])
    fewest = min(process.steps for process in processes)
    return (
        f"{_of_all(len(reasons), processes)} stopped early, with as few as {fewest} of "
        f"{protocol.least_steps} steps, at protocol.{CUT_SHORT[reason]}={limit:g}: raise it, or "
        "use a smaller batch_size"
    )
