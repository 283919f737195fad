"""Which doubts a result carries, how heavy each one is, and the grade that they leave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steptime.analysis.flags import machine, ranks, timing
from steptime.analysis.process import Process

LEVELS = ("invalid", "noisy", "limits", "note")
GRADE_A_PROCESSES = 8
OWN_METRIC = ("too_few_samples",)
"""These limit the metric that they name, not the result."""

Rule = Callable[[Sequence[Process]], str | None]

RULES: tuple[tuple[str, str, Rule], ...] = (
    ("unsynchronised", "invalid", timing.unsynchronised),
    ("no_steady_state", "invalid", timing.no_steady_state),
    ("no_steady_state", "noisy", timing.seldom_steady),
    ("recompiled", "invalid", timing.recompiled),
    ("recompiled", "note", timing.recompiled_before),
    ("clock_drift", "invalid", timing.clock_wrong),
    ("clock_drift", "noisy", timing.clock_drift),
    ("contended", "noisy", machine.contended),
    ("idle_cpu", "note", machine.idle_cpu),
    ("stolen", "noisy", machine.stolen),
    ("throttled", "noisy", machine.throttled),
    ("power_capped", "note", machine.power_capped),
    ("straggler", "note", ranks.straggler),
    ("drift", "noisy", timing.drifts),
    ("level_shift", "noisy", timing.level_shifts),
    ("session_drift", "noisy", timing.session_drift),
    ("unstable", "noisy", timing.unstable),
    ("bimodal", "note", timing.bimodal),
    ("few_processes", "limits", timing.few_processes),
    ("one_process", "limits", timing.one_process),
    ("too_few_samples", "limits", timing.too_few_samples),
    ("target_missed", "limits", timing.target_missed),
    ("clock_coarse", "noisy", timing.clock_coarse),
    ("slow_clock", "noisy", timing.slow_clock),
    ("harness_share", "note", timing.harness_share),
    ("host_bound", "note", timing.host_bound),
    ("async_gain", "note", timing.async_gain),
    ("allocator_churn", "note", machine.allocator_churn),
    ("gc_in_step", "note", machine.gc_in_step),
    ("swap", "noisy", machine.swap),
    ("virtualised", "note", machine.virtualised),
    ("governor", "note", machine.governor),
    ("turbo", "note", machine.turbo),
    ("smt_shared", "note", machine.smt_shared),
    ("other_gpu_process", "note", machine.other_gpu_process),
)


@dataclass(frozen=True)
class Flag:
    name: str
    level: str
    evidence: str


def flags(parts: Sequence[Process], levels: Sequence[str] = LEVELS) -> tuple[Flag, ...]:
    """None where nothing was measured."""
    asked = [entry for entry in RULES if entry[1] in levels and parts]
    return tuple(
        Flag(name, level, evidence) for name, level, rule in asked if (evidence := rule(parts))
    )


def invalid(parts: Sequence[Process]) -> tuple[Flag, ...]:
    """Only what forbids a comparison: one process can be asked too."""
    return flags(parts, ("invalid",))


def grade(found: Sequence[Flag], processes: int) -> str:
    levels = {flag.level for flag in found if flag.name not in OWN_METRIC}
    if "invalid" in levels:
        return "X"
    if levels & {"noisy", "limits"}:
        return "C"
    return "A" if processes >= GRADE_A_PROCESSES else "B"
