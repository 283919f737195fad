"""`python -m steptime.worker CASE.json JOURNAL.jsonl`: one task, one case. Only this process imports a framework."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import IO

from steptime import __version__, shelf, tasks, workloads
from steptime.core.accuracy import NoAccuracy
from steptime.core.errors import NotInstalled, SteptimeError, Unsupported
from steptime.core.job import Job
from steptime.core.record import OUTPUT_LINES, Failure
from steptime.store.journal import Journal, NotWritten

PR_SET_PDEATHSIG = 1


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
    """Ends the journal with what was found, or with why not."""
    try:
        perform(job, journal, answers)
    except (NotWritten, NoAccuracy) as problem:
        journal.failed(Failure(cause="crashed", reason=str(problem)))
    except Unsupported as problem:
        journal.failed(Failure(cause="unsupported", reason=str(problem)))
    except NotInstalled as problem:
        journal.failed(Failure(cause="not_installed", reason=str(problem)))
    except SteptimeError as problem:
        journal.failed(Failure(cause="unsupported", reason=str(problem)))
    except MemoryError as problem:
        journal.failed(told("out_of_memory", problem))
    except Exception as problem:
        journal.failed(told("crashed", problem))


def perform(job: Job, journal: Journal, answers: IO[str] | None) -> None:
    begin = time.perf_counter()
    framework, case = load_framework(job.case.framework), job.case
    from steptime.engine import machine

    software = {"steptime": __version__, "python": platform.python_version(), **framework.versions()}
    imported = time.perf_counter() - begin
    reason = framework.unsupported(case)
    if reason is not None:
        raise Unsupported(reason)
    network = workloads.load(case.workload).describe(case)
    journal.context(machine=machine.inventory(), software=software, network=network)
    try:
        shelf.load("tasks", job.task).perform(tasks.Setting(job, journal, framework, imported, answers))
    except Exception as problem:
        if framework.is_out_of_memory(problem):
            raise MemoryError(str(problem)) from problem
        raise


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
