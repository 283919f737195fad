"""B against A: faster, slower, the same, or not known. Refuses where the two did not do the same work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from steptime.analysis import intervals
from steptime.analysis.certificates import Certificate, remark, uncertified
from steptime.analysis.flags import invalid_flags
from steptime.analysis.flags.machine import contended
from steptime.analysis.intervals import NORMAL_95, Interval
from steptime.analysis.process import Process, measured_processes
from steptime.analysis.quantiles import Numbers
from steptime.analysis.stopping import PILOT, elapsed_seconds, set_aside
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Record

Pair = tuple[Attempt, Attempt]

SAME_SETTINGS = ("phase", "batch_size", "ranks", "data", "precision", "allocator", "timing")
STORED_ALPHA = 0.05
TOO_FEW = "too_few_processes"  # of one side, for any interval: no ratio could decide
SESSION_SD = (
    0.03  # how much a machine differs from session to session, where nobody has measured it
)


@dataclass(frozen=True)
class Verdict:
    """How long B takes, A being 1."""

    word: str
    ratio: float
    low: float | None
    high: float | None
    p: float | None  # for "no difference"; looking several times is accounted for


@dataclass(frozen=True, kw_only=True)
class Comparison:
    verdict: Verdict
    units: int  # pairs, or the smaller number of processes
    cpu_time: Verdict | None = None  # single-threaded work on a CPU only: waiting threads spin
    remarks: tuple[str, ...] = ()
    metric: str = "step time"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def different_work(a: Attempt, b: Attempt, known: Sequence[Certificate] = ()) -> list[str]:
    """Why these two must not be compared; empty when they may. Certificates tell which frameworks compute the same."""
    reasons = [
        f"{name} differs: {_setting(a, name)} and {_setting(b, name)}"
        for name in (*SAME_SETTINGS, "threads", "optimizer", "fingerprint")
        if _setting(a, name) != _setting(b, name)
    ]
    if a.case.framework != b.case.framework and (why := uncertified(a, b, known)):
        reasons.append(why)
    for attempt in (a, b):
        found = invalid_flags(measured_processes([attempt]))
        reasons += [
            f"{attempt.case.label} is invalid: {flag.name}, {flag.evidence}" for flag in found
        ]
    return reasons


def noted(comparison: Comparison, sides: Pair, known: Sequence[Certificate]) -> Comparison:
    """With a remark where two frameworks were compared by right of their certificates."""
    a, b = sides
    if a.case.framework == b.case.framework or uncertified(a, b, known):
        return comparison
    return replace(comparison, remarks=(*comparison.remarks, remark(a, b, known)))


def _setting(attempt: Attempt, name: str) -> Any:
    """What was really used, where the record tells it."""
    case = attempt.case
    if name == "fingerprint":
        return attempt.network.get("fingerprint", case.workload)
    if name == "optimizer":
        return (
            attempt.network.get("optimizer", case.optimizer) if case.phase == "training" else None
        )
    if name == "threads" and attempt.measurement is not None:
        return attempt.measurement.facts.get("threads", case.threads)
    return getattr(case, name)


def live(pairs: Sequence[Pair]) -> Comparison:
    """Resident pairs that took turns: one number per pair, and the pairs are the units."""
    protocol, parts = pairs[0][0].protocol, _processes(pairs)
    together = [part for pair in parts for part in pair]
    verdict = judge(np.array([log_ratio(a, b) for a, b in parts]), protocol)
    by_cpu = (
        judge(np.array([cpu_log_ratio(a, b) for a, b in parts]), protocol)
        if _single(together)
        else None
    )
    remarks = [f"contended: {busy}"] if (busy := contended(together)) else []
    if found := [flag for side in zip(*parts, strict=True) for flag in invalid_flags(side)]:
        verdict, by_cpu = replace(verdict, word="inconclusive"), None
        remarks += [f"invalid: {flag.name}, {flag.evidence}" for flag in found]
    return Comparison(verdict=verdict, units=len(pairs), cpu_time=by_cpu, remarks=tuple(remarks))


def _processes(pairs: Sequence[Pair]) -> list[tuple[Process, Process]]:
    return [(measured_processes([a])[0], measured_processes([b])[0]) for a, b in pairs]


def _single(parts: Sequence[Process]) -> bool:
    cases = [part.attempt.case for part in parts]
    alone = all(case.device == "cpu" and case.ranks == 1 for case in cases)
    return alone and all(_setting(part.attempt, "threads") == 1 for part in parts)


def log_ratio(a: Process, b: Process) -> float:
    """Median over the block pairs: what drifts slowly is in both and cancels."""
    return float(np.median(_block_log_ratios(a, b)))


def _block_log_ratios(a: Process, b: Process) -> Numbers:
    """log(median of B / median of A), the i-th turn of one with the i-th of the other."""
    turns = zip(a.kept_spans, b.kept_spans, strict=False)
    return np.log(
        [b.median_between(y.first, y.last) / a.median_between(x.first, x.last) for x, y in turns]
    )


def block_pairs(pairs: Sequence[Pair], protocol: Protocol) -> int:
    """Turns of each side in the next pair (Kalibera and Jones): where a machine changes its speed from block to block,
    more blocks are cheaper than more pairs."""
    if len(pairs) < PILOT:
        return protocol.pair_blocks
    parts = [(measured_processes([a])[0], measured_processes([b])[0]) for a, b in pairs]
    inside = [_block_log_ratios(a, b) for a, b in parts]
    within = float(np.mean([np.var(ratios, ddof=1) for ratios in inside if len(ratios) > 1]))
    between = float(np.var([ratios.mean() for ratios in inside], ddof=1)) - within / float(
        np.mean([*map(len, inside)])
    )
    turn_cost = sum(part.blocks[-1].host_ns for pair in parts for part in pair) / 1e9 / len(parts)
    start_cost = sum(elapsed_seconds(attempt) for pair in pairs for attempt in pair) / len(pairs)
    best = math.sqrt(start_cost / turn_cost * within / between) if between > 0 else math.inf
    return math.ceil(min(max(best, protocol.pair_blocks), protocol.pair_blocks_most))


def cpu_log_ratio(a: Process, b: Process) -> float:
    return float(
        np.median(
            [_log_cpu(y, b) - _log_cpu(x, a) for x, y in zip(a.blocks, b.blocks, strict=False)]
        )
    )


def _log_cpu(block: Any, part: Process) -> float:
    return math.log(max(1, block.cpu_ns) / (block.samples * part.measurement.group))


def judge(log_ratios: Numbers, protocol: Protocol) -> Verdict:
    """Exact under "no difference" whatever the noise, because a coin decides the order inside each pair."""
    interval = intervals.signed_rank(log_ratios, protocol.pair_alpha)
    p = min(1.0, len(protocol.pair_looks) * intervals.signed_rank_p(log_ratios))
    if interval is None:
        return Verdict("inconclusive", math.exp(intervals.typical(log_ratios)), None, None, p)
    word = (
        word_of(interval, protocol.same_within)
        if len(log_ratios) >= protocol.pair_looks[0]
        else "inconclusive"
    )
    return Verdict(
        word, math.exp(interval.centre), math.exp(interval.low), math.exp(interval.high), p
    )


def word_of(interval: Interval, same_within: float) -> str:
    if interval.low > 0:
        return "slower"
    if interval.high < 0:
        return "faster"
    inside = max(-interval.low, interval.high) <= math.log1p(same_within)
    return "same" if inside else "inconclusive"


def wants_more_pairs(pairs: Sequence[Pair]) -> bool:
    if not pairs:
        return True
    return undecided(
        np.array([log_ratio(a, b) for a, b in _processes(pairs)]), pairs[0][0].protocol
    )


def undecided(log_ratios: Numbers, protocol: Protocol) -> bool:
    """A verdict is looked for at the looks only: looking more often would find differences that are not there."""
    count = len(log_ratios)
    if count >= protocol.pair_looks[-1]:
        return False
    interval = (
        intervals.signed_rank(log_ratios, protocol.pair_alpha)
        if count in protocol.pair_looks
        else None
    )
    return interval is None or word_of(interval, protocol.same_within) == "inconclusive"


def stored(a: Record, b: Record, session_sd: float = SESSION_SD) -> Comparison:
    """Two sessions: the machine's own change from one to the other is added, and the verdict is at most "likely"."""
    first, second = process_logs(a), process_logs(b)
    interval = intervals.mann_whitney(first, second, STORED_ALPHA)
    units, remarks = min(len(first), len(second)), ("not_interleaved",)
    if interval is None:
        verdict = Verdict(
            "inconclusive", math.exp(intervals.shift(first, second)), None, None, None
        )
        return Comparison(verdict=verdict, units=units, remarks=(TOO_FEW, *remarks))
    verdict = between_sessions(interval, a.last.protocol.same_within, session_sd)
    least = 2 * float(
        intervals.mann_whitney_law(len(first), len(second))[0]
    )  # so few processes cannot say more
    return Comparison(
        verdict=replace(verdict, p=max(verdict.p or 0.0, least)), units=units, remarks=remarks
    )


def between_sessions(
    interval: Interval, same_within: float, session_sd: float = SESSION_SD
) -> Verdict:
    """Of log ratios. The chance is a normal law's with the widened interval: below 5 % where that excludes 0."""
    wide = _widened(interval, NORMAL_95 * math.sqrt(2) * session_sd)
    word = word_of(wide, same_within)
    reach = wide.centre - wide.low if wide.centre > 0 else wide.high - wide.centre
    p = math.erfc(NORMAL_95 * abs(wide.centre) / reach / math.sqrt(2))
    word = word if word == "inconclusive" else f"likely {word}"
    return Verdict(word, math.exp(wide.centre), math.exp(wide.low), math.exp(wide.high), p)


def process_logs(record: Record) -> Numbers:
    """Each process's typical time, in the order in which they ran."""
    parts = measured_processes(record.attempts)
    aside = set_aside(parts)
    return np.log([part.typical for part in parts if part.attempt.id not in aside])


def _widened(interval: Interval, reach: float) -> Interval:
    """Independent errors add in squares."""
    down, up = (
        math.hypot(interval.centre - interval.low, reach),
        math.hypot(interval.high - interval.centre, reach),
    )
    return Interval(interval.centre, interval.centre - down, interval.centre + up)
