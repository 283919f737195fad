"""`python -m steptime.worker CASE.json JOURNAL.jsonl`: measures one case. The only process that imports a framework."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from steptime import __version__, shelf, workloads
from steptime.core.errors import NotInstalled, SteptimeError, Unsupported
from steptime.core.job import Job
from steptime.core.measurement import Measurement
from steptime.core.record import Failure
from steptime.store.journal import Journal, NotWritten

PR_SET_PDEATHSIG = 1
OUTPUT_LINES = 40
TURN_STEPS = 3


def main() -> int:
    orders, journal_path = sys.argv[1:]
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    job = Job.from_dict(json.loads(Path(orders).read_text()))
    answers = private_output() if job.turns else None
    try:
        with Journal(Path(journal_path)) as journal:
            journal.begin(job)
            attempt(job, journal, answers)
    except NotWritten as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def attempt(job: Job, journal: Journal, answers: IO[str] | None) -> None:
    """Ends the journal with what was measured, or with why not."""
    try:
        outcome: Measurement | Failure = measure(job, journal, answers)
    except Unsupported as problem:
        outcome = Failure(cause="unsupported", reason=str(problem))
    except NotInstalled as problem:
        outcome = Failure(cause="not_installed", reason=str(problem))
    except NotWritten:
        raise
    except SteptimeError as problem:
        outcome = Failure(cause="unsupported", reason=str(problem))
    except MemoryError as problem:
        outcome = told("out_of_memory", problem)
    except Exception as problem:
        outcome = told("crashed", problem)
    if isinstance(outcome, Failure):
        journal.failed(outcome)
        return
    try:
        journal.measured(outcome)
    except NotWritten as problem:
        journal.failed(Failure(cause="crashed", reason=str(problem)))


def measure(job: Job, journal: Journal, answers: IO[str] | None) -> Measurement:
    begin = time.perf_counter()
    framework, case = load_framework(job.case.framework), job.case
    from steptime.engine import machine
    from steptime.engine.meter import Meter

    software = {"steptime": __version__, "python": platform.python_version(), **framework.versions()}
    imported = time.perf_counter()
    reason = framework.unsupported(case)
    if reason is not None:
        raise Unsupported(reason)
    kind = workloads.load(case.workload)
    journal.context(machine=machine.inventory(), software=software, network=kind.describe(case))
    try:
        built = time.perf_counter()
        meter = Meter(framework.lower(kind.build(case), case), case, job.protocol)
        starts = {"import": imported - begin, "build": time.perf_counter() - built}
        return in_turns(meter, job, answers, starts) if answers else straight(meter, starts)
    except Exception as problem:
        if framework.is_out_of_memory(problem):
            raise MemoryError(str(problem)) from problem
        raise


def straight(meter: Any, starts: dict[str, float]) -> Measurement:
    meter.prepare()
    meter.measure()
    measurement: Measurement = meter.measurement(starts)
    return measurement


def in_turns(meter: Any, job: Job, answers: IO[str], starts: dict[str, float]) -> Measurement:
    """Warm-up alone, then one block for each `turn` on standard input: all that is kept is blocks of turns."""
    meter.prepare()
    meter.block(0.0)  # behind it the clock stands still until the first turn
    warm = meter.samples
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() != "turn":
            break
        meter.block(job.protocol.pair_block_seconds, least_steps=TURN_STEPS)
        print("done", file=answers, flush=True)
    measurement: Measurement = meter.measurement(starts)
    return replace(measurement, cut=warm)


def told(cause: str, problem: Exception) -> Failure:
    lines = "".join(traceback.format_exception(problem)).splitlines()
    reason = f"{type(problem).__name__}: {problem}".splitlines()[0]
    return Failure(cause=cause, reason=reason, output="\n".join(lines[-OUTPUT_LINES:]))


def load_framework(name: str) -> ModuleType:
    try:
        return shelf.load("frameworks", name)
    except ImportError as problem:
        line = shelf.constant("frameworks", name, "INSTALL") or f"pip install {name}"
        raise NotInstalled(f"{name} is not installed here ({problem}). Install it with: {line}") from None


def end_with_parent() -> None:
    """A parent that is killed takes its worker along; the check is for one killed before this was asked for."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.environ.get("STEPTIME_PARENT", str(os.getppid())) != str(os.getppid()):
        sys.exit("The process that started this worker is gone.")


def private_output() -> IO[str]:
    """Answers to the parent have standard output for themselves; what frameworks print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    sys.exit(main())
