"""B against A: faster, slower, the same, or inconclusive. Refuses if the two did different work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from steptime.analysis import intervals
from steptime.analysis.certificates import Certificate, certified_remark, why_uncertified
from steptime.analysis.flags import Flag, invalid_flags
from steptime.analysis.flags.machine import contended
from steptime.analysis.intervals import Interval
from steptime.analysis.process import Process, measured_processes
from steptime.analysis.quantiles import Numbers
from steptime.analysis.session_deviation import SessionPair
from steptime.analysis.stopping import PILOT, best_repetitions, counted_processes, elapsed_seconds
from steptime.core.measurement import Block
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt

Pair = tuple[Attempt, Attempt]
ProcessPair = tuple[Process, Process]

INCONCLUSIVE = "inconclusive"
LIKELY = "likely "
SAME_SETTINGS = ("phase", "batch_size", "ranks", "data", "allocator", "timing")
# A comparison alarms in at most this share of cases without a difference.
ALPHA = 0.05


@dataclass(frozen=True)
class Verdict:
    """How long B takes, if A takes 1."""

    # Faster, slower, same (each may be "likely …"), inconclusive.
    outcome: str
    ratio: float
    low: float | None = None
    high: float | None = None
    # Of "no difference", adjusted for repeated looks or many cases. At most `alpha` if, and only
    # if, the interval excludes 1: then the verdict is faster or slower.
    p: float | None = None
    alpha: float = ALPHA
    # Of the interval.
    level: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    verdict: Verdict
    # Pairs, or the smaller number of processes.
    units: int
    # Of A and of B.
    processes: tuple[int, int]
    # Whether the processes took turns in pairs, which are the units then.
    paired: bool = True
    # Single-threaded work on a CPU only: waiting threads spin.
    cpu_time: Verdict | None = None
    # Stored results: how much sessions differ, which widens the interval.
    session_deviation: SessionPair | None = None
    remarks: tuple[str, ...] = ()
    metric: str = "step time"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def different_work(a: Attempt, b: Attempt, certificates: Sequence[Certificate] = ()) -> list[str]:
    """Why these two must not be compared; empty if they may.

    Certificates say which frameworks compute the same."""
    reasons = []
    for name in (*SAME_SETTINGS, "threads", "optimizer", "fingerprint"):
        first = _used_value(a, name)
        second = _used_value(b, name)
        if first != second:
            reasons.append(f"{name} differs: {first} and {second}")
    if a.case.framework != b.case.framework:
        reason = why_uncertified(a, b, certificates)
        if reason:
            reasons.append(reason)
    return reasons


def refusal_reasons(
    a: Sequence[Attempt], b: Sequence[Attempt], certificates: Sequence[Certificate] = ()
) -> list[str]:
    """Why these processes must not be compared: different work in any of them, or invalid ones."""
    pairs = [*((attempt, b[0]) for attempt in a), *((a[0], attempt) for attempt in b[1:])]
    reasons: list[str] = []
    for first, second in pairs:
        reasons += different_work(first, second, certificates)
    return list(dict.fromkeys([*reasons, *invalid_reasons(a), *invalid_reasons(b)]))


def invalid_reasons(attempts: Sequence[Attempt]) -> list[str]:
    """Why the result of these processes is invalid, by all of them that count."""
    reasons = []
    for flag in invalid_flags(counted_processes(attempts)):
        reasons.append(f"{attempts[0].case.label} is invalid: {flag.name}, {flag.evidence}")
    return reasons


def with_certificate_remark(
    comparison: Comparison, a: Attempt, b: Attempt, certificates: Sequence[Certificate]
) -> Comparison:
    """Adds a remark if certificates allowed the comparison of two frameworks."""
    if a.case.framework == b.case.framework or why_uncertified(a, b, certificates):
        return comparison
    remark = certified_remark(a, b, certificates)
    return replace(comparison, remarks=(*comparison.remarks, remark))


def _used_value(attempt: Attempt, name: str) -> Any:
    """The value that was really used, if the record has it."""
    case = attempt.case
    if name == "fingerprint":
        return attempt.network.get("fingerprint", case.workload)
    if name == "optimizer":
        # Only training has an optimizer.
        if case.phase != "training":
            return None
        return attempt.network.get("optimizer", case.optimizer)
    if name == "threads" and attempt.measurement is not None:
        return attempt.measurement.facts.get("threads", case.threads)
    return getattr(case, name)


def compare_pairs(pairs: Sequence[Pair]) -> Comparison:
    """Live pairs that took turns. Each pair gives one number, and the pairs are the units."""
    protocol = pairs[0][0].protocol
    process_pairs = _process_pairs(pairs)
    processes = [process for pair in process_pairs for process in pair]
    verdict = judge(np.array([log_ratio(a, b) for a, b in process_pairs]), protocol)
    cpu_time = None
    if _is_single_threaded(processes):
        cpu_ratios = [cpu_log_ratio(a, b) for a, b in process_pairs]
        cpu_time = judge(np.array(cpu_ratios), protocol)
    remarks = []
    contention = contended(processes)
    if contention:
        remarks.append(f"contended: {contention}")
    invalid = _invalid_flags_by_side(process_pairs)
    if invalid:
        # An interval of invalid times would mean nothing.
        verdict = Verdict(INCONCLUSIVE, verdict.ratio)
        cpu_time = None
        remarks += [f"invalid: {flag.name}, {flag.evidence}" for flag in invalid]
    return Comparison(
        verdict=verdict,
        units=len(pairs),
        processes=(len(pairs), len(pairs)),
        cpu_time=cpu_time,
        remarks=tuple(remarks),
    )


def _process_pairs(pairs: Sequence[Pair]) -> list[ProcessPair]:
    return [(measured_processes([a])[0], measured_processes([b])[0]) for a, b in pairs]


def _invalid_flags_by_side(pairs: Sequence[ProcessPair]) -> list[Flag]:
    first = [a for a, _ in pairs]
    second = [b for _, b in pairs]
    return [*invalid_flags(first), *invalid_flags(second)]


def _is_single_threaded(processes: Sequence[Process]) -> bool:
    for process in processes:
        case = process.attempt.case
        if case.device != "cpu" or case.ranks != 1 or _used_value(process.attempt, "threads") != 1:
            return False
    return True


def log_ratio(a: Process, b: Process) -> float:
    """Median over the block pairs: slow drift is in both and cancels."""
    return float(np.median(_block_log_ratios(a, b)))


def _block_log_ratios(a: Process, b: Process) -> Numbers:
    """log(median of B / median of A), the i-th turn of A with the i-th turn of B."""
    ratios = []
    for a_span, b_span in zip(a.kept_spans, b.kept_spans, strict=False):
        a_median = a.median_between(a_span.first, a_span.last)
        b_median = b.median_between(b_span.first, b_span.last)
        ratios.append(b_median / a_median)
    return np.log(ratios)


def block_pairs(pairs: Sequence[Pair], protocol: Protocol) -> int:
    """Turns of each side in the next pair (Kalibera and Jones).

    If a machine changes its speed from block to block, more blocks are cheaper than more pairs."""
    if len(pairs) < PILOT:
        return protocol.pair_blocks
    process_pairs = _process_pairs(pairs)
    ratios = [_block_log_ratios(a, b) for a, b in process_pairs]
    within = float(np.mean([np.var(row, ddof=1) for row in ratios if len(row) > 1]))
    mean_turns = float(np.mean([len(row) for row in ratios]))
    between = float(np.var([row.mean() for row in ratios], ddof=1)) - within / mean_turns
    last_blocks_ns = sum(process.blocks[-1].host_ns for pair in process_pairs for process in pair)
    turn_cost = last_blocks_ns / 1e9 / len(pairs)
    start_cost = sum(elapsed_seconds(attempt) for pair in pairs for attempt in pair) / len(pairs)
    best = best_repetitions(start_cost / turn_cost, within, between)
    return math.ceil(min(max(best, protocol.pair_blocks), protocol.pair_blocks_most))


def cpu_log_ratio(a: Process, b: Process) -> float:
    """The same from CPU times, which do not depend on what else runs."""
    ratios = []
    for a_block, b_block in zip(a.blocks, b.blocks, strict=False):
        ratios.append(_log_cpu(b_block, b) - _log_cpu(a_block, a))
    return float(np.median(ratios))


def _log_cpu(block: Block, process: Process) -> float:
    return math.log(max(1, block.cpu_ns) / (block.samples * process.measurement.group))


def judge(log_ratios: Numbers, protocol: Protocol) -> Verdict:
    """Exact under "no difference" for any noise, because a coin decides the order in each pair.

    No interval before the first planned look: it would be one look too many."""
    centre = intervals.typical(log_ratios)
    interval = None
    if len(log_ratios) >= protocol.pair_looks[0]:
        interval = intervals.signed_rank(log_ratios, protocol.pair_alpha)
    if interval is None:
        return Verdict(INCONCLUSIVE, math.exp(centre))
    alpha = looks_alpha(protocol)
    p = intervals.signed_rank_p(log_ratios) * (alpha / protocol.pair_alpha)
    outcome = outcome_of(interval, protocol.same_within)
    return make_verdict(outcome, interval, p, alpha=alpha, level=1 - protocol.pair_alpha)


def looks_alpha(protocol: Protocol) -> float:
    """How often a comparison without a difference alarms at any of its looks, at most.

    A look alarms as often as its interval misses. For the default looks the total is known by
    simulation; for others Bonferroni's bound holds."""
    defaults = Protocol()
    numbers = (protocol.pair_looks, protocol.pair_alpha)
    if numbers == (defaults.pair_looks, defaults.pair_alpha):
        return ALPHA
    return min(1.0, len(protocol.pair_looks) * protocol.pair_alpha)


def make_verdict(
    outcome: str, interval: Interval, p: float | None, *, alpha: float, level: float
) -> Verdict:
    """Of an interval of log ratios."""
    return Verdict(
        outcome,
        math.exp(interval.centre),
        math.exp(interval.low),
        math.exp(interval.high),
        p=None if p is None else min(1.0, p),
        alpha=alpha,
        level=level,
    )


def outcome_of(interval: Interval, same_within: float) -> str:
    """Of an interval of log ratios."""
    if interval.low > 0:
        return "slower"
    if interval.high < 0:
        return "faster"
    inside = max(-interval.low, interval.high) <= math.log1p(same_within)
    return "same" if inside else INCONCLUSIVE


def wants_more_pairs(pairs: Sequence[Pair]) -> bool:
    if not pairs:
        return True
    log_ratios = [log_ratio(a, b) for a, b in _process_pairs(pairs)]
    return is_undecided(np.array(log_ratios), pairs[0][0].protocol)


def is_undecided(log_ratios: Numbers, protocol: Protocol) -> bool:
    """Decides at the planned looks only: more looks would find differences that do not exist."""
    count = len(log_ratios)
    if count >= protocol.pair_looks[-1]:
        return False
    if count not in protocol.pair_looks:
        return True
    interval = intervals.signed_rank(log_ratios, protocol.pair_alpha)
    return interval is None or outcome_of(interval, protocol.same_within) == INCONCLUSIVE
