"""Looks inside a case's step: its parts, its operators, its memory, a trace. In a process that times nothing else."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steptime import workloads
from steptime.core.errors import Unsupported
from steptime.engine.meter import Meter
from steptime.store.blobs import Blobs
from steptime.tasks import TaskContext
from steptime.tasks.profile import operators, phases, trace
from steptime.tasks.profile.traffic import least_bytes

STEPS = 10  # under the framework's profiler
NOT_TOLD = "This framework's programs do not tell their {}."


def perform(context: TaskContext) -> None:
    """`options`: `store`, the folder whose blobs take the trace."""
    case = context.job.case
    if case.data == "real":
        raise Unsupported(
            "A look inside takes one batch again and again; ask for it with data=host."
        )
    work = workloads.load(case.workload).build(case)
    program = context.framework.lower(work, case)
    steady(program, context)
    blobs = Blobs(Path(context.job.options["store"]))
    wanted: dict[str, Callable[[], dict[str, Any]]] = {
        "phases": lambda: phases.phases(
            program, case, lambda other: context.framework.lower(work, other)
        ),
        "operators": lambda: watched(program, blobs),
        "memory": lambda: memory(program),
    }
    found, absent = dict[str, Any](), dict[str, str]()
    for name, look in wanted.items():
        try:
            found[name] = look()
        except Unsupported as reason:
            absent[name] = str(reason)
    if not found:
        raise Unsupported(" ".join(absent.values()))
    context.journal.write_findings(
        {"profile": {**found, "absent": absent, "least_bytes": least_bytes(work, case)}}
    )


def steady(program: Any, context: TaskContext) -> None:
    """Compiled, and past what the first steps do alone."""
    meter = Meter(program, context.job.case, context.job.protocol)
    meter.prepare()
    meter.measurement({})  # lets go of what it watches


def watched(program: Any, blobs: Blobs) -> dict[str, Any]:
    if not hasattr(program, "profile"):
        raise Unsupported(NOT_TOLD.format("operators"))
    plain_seconds = phases.step_seconds(program, program.step, STEPS)
    seen = program.profile(STEPS)
    found = operators.digest(seen, STEPS, plain_seconds)
    return {**found, "trace": trace.keep(seen.events, blobs)}


def memory(program: Any) -> dict[str, Any]:
    if not hasattr(program, "memory_account"):
        raise Unsupported(NOT_TOLD.format("memory by category"))
    account = program.memory_account()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"held_bytes": account.held, "note": account.note, "process_peak_bytes": most}
