"""Profile a case's step: its phases, operators, memory, and a trace.

Runs in a process that times nothing else."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from steptime import workloads
from steptime.core.errors import Unsupported
from steptime.core.inspection import Inspectable
from steptime.core.program import Program
from steptime.engine.meter import Meter
from steptime.store.blobs import Blobs
from steptime.tasks import TaskContext
from steptime.tasks.profile import operators, phases, trace
from steptime.tasks.profile.traffic import least_bytes

STEPS = 10  # under the framework's profiler
NOT_REPORTED = "This framework's programs do not report their {}."


def perform(context: TaskContext) -> None:
    """Option `store`: the folder whose blobs take the trace."""
    case = context.job.case
    if case.data == "real":
        raise Unsupported("A profile repeats one batch; use data=host instead of data=real.")
    work = workloads.load(case.workload).build(case)
    program = context.framework.lower(work, case)
    reach_steady_state(program, context)
    blobs = Blobs(Path(context.job.options["store"]))

    def profile_phases() -> dict[str, Any]:
        return phases.measure_phases(
            program, case, lambda other: context.framework.lower(work, other)
        )

    sections: dict[str, Callable[[], dict[str, Any]]] = {
        "phases": profile_phases,
        "operators": lambda: profile_operators(program, blobs),
        "memory": lambda: profile_memory(program),
    }
    profile: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for name, make_section in sections.items():
        try:
            profile[name] = make_section()
        except Unsupported as reason:
            absent[name] = str(reason)
    if not profile:
        raise Unsupported(" ".join(absent.values()))
    profile |= {"absent": absent, "least_bytes": least_bytes(work, case)}
    context.journal.write_findings({"profile": profile})


def reach_steady_state(program: Program, context: TaskContext) -> None:
    """Compile, and run past what only the first steps do."""
    meter = Meter(program, context.job.case, context.job.protocol)
    meter.prepare()
    meter.measurement({})  # closes the side channels


def profile_operators(program: Program, blobs: Blobs) -> dict[str, Any]:
    if not hasattr(program, "profile"):
        raise Unsupported(NOT_REPORTED.format("operators"))
    plain_seconds = phases.step_seconds(program, program.step, STEPS)
    step_profile = cast(Inspectable, program).profile(STEPS)
    facts = operators.summarise(step_profile, STEPS, plain_seconds)
    return {**facts, "trace": trace.store_trace(step_profile.events, blobs)}


def profile_memory(program: Program) -> dict[str, Any]:
    if not hasattr(program, "memory_account"):
        raise Unsupported(NOT_REPORTED.format("memory by category"))
    account = cast(Inspectable, program).memory_account()
    # Linux reports kibibytes.
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"held_bytes": account.held, "note": account.note, "process_peak_bytes": peak_bytes}
