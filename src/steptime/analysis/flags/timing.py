"""Doubts about the timing itself, one rule per flag: each returns its evidence as a sentence, or None."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc

from steptime.analysis import intervals
from steptime.analysis.process import Process
from steptime.analysis.quantiles import PERCENTILES, Numbers, steps_needed
from steptime.analysis.statistics import relative_spread
from steptime.analysis.steadiness import Trend, drift, level_shift, rises_together, two_groups
from steptime.analysis.stopping import CLOCK_JUMP, FIRST_LOOK
from steptime.core.format import duration, percent

Parts = Sequence[Process]

BLOCK_P = 0.01
RECORD_P = 0.03
DRIFT, LEVEL = 0.01, 0.02
SESSION_P = 0.02
UNSTABLE = 0.05
UNSTEADY_SHARE = 0.25
CLOCK_COSTS = 200
STAMP_SHARE = 0.001
VIOLATIONS = 0.25
FORCED = 0.05
HOST_BOUND = 0.95
ASYNC_GAIN = 1.05
CLOCK_DRIFT = 0.001
FAST_CLOCKS = ("tsc", "arch_sys_counter")


def unsynchronised(parts: Parts) -> str | None:
    """The engine's self-check: work that is not waited for shows in block after block."""
    for part in parts:
        checks, where = part.measurement.checks, f"in process {part.attempt.process}"
        if _in_several(share := checks.get("closure_violations", 0.0), part):
            middle = percent(checks.get("closure_median", 0.0))
            return f"host and device disagree in {percent(share)} of the blocks {where}, by {middle} in the middle"
        if _in_several(share := checks.get("drain_share_violations", 0.0), part):
            return f"steps return before they are done: {percent(share)} of the blocks {where} end in a long wait"
        if (share := checks.get("forced_share", 0.0)) > FORCED:
            return f"after the wait {percent(share)} of the work was still to be done {where}"
    return None


def _in_several(share: float, part: Process) -> bool:
    """In all blocks, or in more than one however few there are: one may be disturbed from outside."""
    return share > VIOLATIONS and (share == 1.0 or share * len(part.measurement.blocks) > 1.5)


def no_steady_state(parts: Parts) -> str | None:
    found = sum(not part.measurement.steady for part in parts)
    return (
        _of(found, parts, "found no steady state") if found > UNSTEADY_SHARE * len(parts) else None
    )


def seldom_steady(parts: Parts) -> str | None:
    found = sum(not part.measurement.steady for part in parts)
    return (
        _of(found, parts, "found no steady state")
        if 0 < found <= UNSTEADY_SHARE * len(parts)
        else None
    )


def _of(found: int, parts: Parts, what: str) -> str:
    return f"{found} of {len(parts)} processes {what}"


def recompiled(parts: Parts) -> str | None:
    found = sum(block.compilations for part in parts for block in part.blocks)
    return f"something was compiled {found} times inside the kept steps" if found else None


def recompiled_before(parts: Parts) -> str | None:
    """The engine moved the cut behind it, once."""
    found = sum(part.measurement.checks.get("recompiled", 0) > 0 for part in parts)
    return (
        _of(found, parts, "compiled again after warm-up; the cut was moved behind it")
        if found
        else None
    )


def drifts(parts: Parts) -> str | None:
    found = _beyond_chance(
        [_Change(part, trend) for part in parts if (trend := drift(_medians(part)))], DRIFT
    )
    if not found:
        return None
    worst = found[0]
    return f"{_of(len(found), parts, 'drift')}; {worst} from the first third to the last"


def level_shifts(parts: Parts) -> str | None:
    found = _beyond_chance(
        [_Change(part, trend) for part in parts if (trend := level_shift(_medians(part)))], LEVEL
    )
    if not found:
        return None
    worst = found[0]
    stamps, sample = worst.part.measurement.stamps, worst.part.points[worst.trend.place].first
    seconds = (stamps[sample] - stamps[0]) / 1e9
    return f"{_of(len(found), parts, 'change their level')}; {worst} at sample {sample}, {seconds:.2f} s after the first"


def _medians(part: Process) -> Numbers:
    return np.array([point.seconds for point in part.points])


class _Change(NamedTuple):
    part: Process
    trend: Trend

    def __str__(self) -> str:
        return f"process {self.part.attempt.process} by {100 * self.trend.change:+.1f} % (p = {self.trend.p:.4f})"


def _beyond_chance(changes: list[_Change], least: float) -> list[_Change]:
    """Many processes are many tests: one counts that is beyond them all, or more than chance would bring."""
    found = sorted(
        (c for c in changes if abs(c.trend.change) > least and c.trend.p < BLOCK_P),
        key=lambda c: c.trend.p,
    )
    by_chance = bdtrc(len(found) - 1, len(changes), BLOCK_P) if found else 1.0
    alone = len(changes) * found[0].trend.p < BLOCK_P if found else False
    return found if alone or by_chance < RECORD_P else []


def session_drift(parts: Parts) -> str | None:
    p = rises_together(np.array([part.typical for part in parts]))
    return (
        f"neighbouring processes resemble each other (rank von Neumann test, p = {p:.4f})"
        if p < SESSION_P
        else None
    )


def unstable(parts: Parts) -> str | None:
    spread = relative_spread(np.array([part.typical for part in parts])) or 0.0
    return (
        f"processes differ by {percent(spread)} (CV of {len(parts)} medians)"
        if spread > UNSTABLE
        else None
    )


def bimodal(parts: Parts) -> str | None:
    gap = two_groups(np.array([part.typical for part in parts]))
    return (
        f"two groups of processes: up to {duration(gap[0])} and from {duration(gap[1])}"
        if gap
        else None
    )


def few_processes(parts: Parts) -> str | None:
    few = 1 < len(parts) < FIRST_LOOK
    return (
        f"{len(parts)} processes: an interval across processes needs {FIRST_LOOK}" if few else None
    )


def one_process(parts: Parts) -> str | None:
    return (
        "one process: what differs from process to process is not seen" if len(parts) == 1 else None
    )


def too_few_samples(parts: Parts) -> str | None:
    count = sum(len(part.step_seconds) for part in parts)
    missing = [p for p in PERCENTILES if steps_needed(p) > count]
    if not missing or any(part.measurement.group > 1 for part in parts):
        return None
    return f"{count} steps: " + ", ".join(f"p{p:g} needs {steps_needed(p):,}" for p in missing)


def target_missed(parts: Parts) -> str | None:
    protocol = parts[-1].attempt.protocol
    interval = intervals.signed_rank(
        np.array([part.typical for part in parts]), protocol.look_alpha
    )
    if interval is None or interval.half_width <= protocol.target:
        return None
    return f"±{percent(interval.half_width)} after {len(parts)} processes, asked for ±{percent(protocol.target)}"


def _sample_ns(part: Process) -> float:
    return part.typical * part.measurement.group * 1e9


def clock_coarse(parts: Parts) -> str | None:
    for part in parts:
        cost = part.measurement.clock.get("cost_ns") or 0
        if part.measurement.device_ns is None and _sample_ns(part) < CLOCK_COSTS * cost:
            return f"a sample of {duration(_sample_ns(part) / 1e9)} is under {CLOCK_COSTS} × the clock's {cost:.0f} ns"
    return None


def slow_clock(parts: Parts) -> str | None:
    sources = {part.measurement.clock.get("source") for part in parts} - {None, *FAST_CLOCKS}
    return (
        f"the clock source is {', '.join(sorted(map(str, sources)))}, not tsc" if sources else None
    )


def _worst_drift(parts: Parts) -> float:
    return max(
        (abs(float(part.measurement.clock.get("drift") or 0.0)) for part in parts), default=0.0
    )


def clock_drift(parts: Parts) -> str | None:
    worst = _worst_drift(parts)
    return (
        f"clock and system clock moved apart by {percent(worst)}"
        if CLOCK_DRIFT < worst <= CLOCK_JUMP
        else None
    )


def clock_wrong(parts: Parts) -> str | None:
    worst = _worst_drift(parts)
    return f"clock and system clock moved apart by {percent(worst)}" if worst > CLOCK_JUMP else None


def harness_share(parts: Parts) -> str | None:
    """A stamp on the host, and an event where the device is timed by its own."""
    shares = []
    for part in parts:
        event = (
            part.measurement.checks.get("event_cost_ns", 0.0)
            if part.measurement.device_ns is not None
            else 0.0
        )
        clock = part.measurement.clock
        shares.append(
            (float(clock.get("stamp_ns") or clock.get("cost_ns") or 0.0) + event) / _sample_ns(part)
        )
    worst = max(shares)
    return f"stamping takes {percent(worst)} of a sample" if worst > STAMP_SHARE else None


def host_bound(parts: Parts) -> str | None:
    shares = [
        share
        for part in parts
        if (share := part.measurement.checks.get("dispatch_share")) is not None
    ]
    share = float(np.median(shares)) if shares else 0.0
    return (
        f"the host needs {percent(share)} of the time to give the device its work"
        if share >= HOST_BOUND
        else None
    )


def async_gain(parts: Parts) -> str | None:
    ratios = [
        r for part in parts if (r := part.measurement.checks.get("latency_ratio")) is not None
    ]
    ratio = float(np.median(ratios)) if ratios else 1.0
    return (
        f"waiting for each step would make it {ratio:.2f} × as long" if ratio > ASYNC_GAIN else None
    )
