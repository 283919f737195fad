"""Flags of a result: which rules there are, how heavy each is, and the grade that follows.

To add a flag, write its rule in one of the modules here, add a line to `RULES`, and add
its test. A rule takes the processes of a result and returns its evidence as a sentence, or None."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from steptime.analysis.flags import arithmetic, machine, ranks, timing
from steptime.analysis.process import Process

LEVELS = ("invalid", "noisy", "limits", "note")
GRADE_A_PROCESSES = 8
# These limit the metric that they name, not the result.
METRIC_ONLY = ("too_few_samples",)


class Rule(NamedTuple):
    flag: str
    level: str
    evidence: Callable[[Sequence[Process]], str | None]


# Flags are reported in this order.
RULES: tuple[Rule, ...] = (
    Rule("unsynchronised", "invalid", timing.unsynchronised),
    Rule("implausible", "invalid", arithmetic.implausible),
    Rule("no_steady_state", "invalid", timing.no_steady_state),
    Rule("no_steady_state", "noisy", timing.seldom_steady),
    Rule("recompiled", "invalid", timing.recompiled),
    Rule("recompiled", "note", timing.recompiled_before),
    Rule("clock_drift", "invalid", timing.clock_wrong),
    Rule("clock_drift", "noisy", timing.clock_drift),
    Rule("contended", "noisy", machine.contended),
    Rule("idle_cpu", "note", machine.idle_cpu),
    Rule("stolen", "noisy", machine.stolen),
    Rule("throttled", "noisy", machine.throttled),
    Rule("power_capped", "note", machine.power_capped),
    Rule("straggler", "note", ranks.straggler),
    Rule("drift", "noisy", timing.drifts),
    Rule("level_shift", "noisy", timing.level_shifts),
    Rule("session_drift", "noisy", timing.session_drift),
    Rule("unstable", "noisy", timing.unstable),
    Rule("bimodal", "noisy", timing.bimodal),
    Rule("few_processes", "limits", timing.few_processes),
    Rule("one_process", "limits", timing.one_process),
    Rule("too_few_samples", "limits", timing.too_few_samples),
    Rule("cut_short", "limits", timing.cut_short),
    Rule("target_missed", "limits", timing.target_missed),
    Rule("clock_coarse", "noisy", timing.clock_coarse),
    Rule("slow_clock", "noisy", timing.slow_clock),
    Rule("harness_share", "note", timing.harness_share),
    Rule("host_bound", "note", timing.host_bound),
    Rule("async_gain", "note", timing.async_gain),
    Rule("allocator_churn", "note", machine.allocator_churn),
    Rule("gc_in_step", "note", machine.gc_in_step),
    Rule("swap", "noisy", machine.swap),
    Rule("virtualised", "note", machine.virtualised),
    Rule("governor", "note", machine.governor),
    Rule("turbo", "note", machine.turbo),
    Rule("smt_shared", "note", machine.smt_shared),
    Rule("other_gpu_process", "note", machine.other_gpu_process),
)


@dataclass(frozen=True)
class Flag:
    name: str
    level: str
    evidence: str


def flags(processes: Sequence[Process], levels: Sequence[str] = LEVELS) -> tuple[Flag, ...]:
    """Flags of these levels; none if nothing was measured."""
    if not processes:
        return ()
    raised = []
    for rule in RULES:
        evidence = rule.evidence(processes) if rule.level in levels else None
        if evidence:
            raised.append(Flag(rule.flag, rule.level, evidence))
    return tuple(raised)


def invalid_flags(processes: Sequence[Process]) -> tuple[Flag, ...]:
    """Flags that forbid a comparison. A single process is enough to ask."""
    return flags(processes, ("invalid",))


def limiting_flags(raised: Sequence[Flag]) -> list[Flag]:
    """Flags that lower the grade of a result."""
    return [flag for flag in raised if flag.level != "note" and flag.name not in METRIC_ONLY]


def grade(raised: Sequence[Flag], processes: int) -> str:
    """X: invalid, C: noisy or limited, B: few processes, A: at least eight processes."""
    levels = {flag.level for flag in limiting_flags(raised)}
    if "invalid" in levels:
        return "X"
    if levels:
        return "C"
    return "A" if processes >= GRADE_A_PROCESSES else "B"
