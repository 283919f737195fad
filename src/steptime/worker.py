"""`python -m steptime.worker CASE.json JOURNAL.jsonl`: one task, one case. Only this process imports a framework."""

from __future__ import annotations

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
from typing import IO, Any, NoReturn

from steptime import __version__, plugins, tasks, workloads
from steptime.core.accuracy import NoAccuracy
from steptime.core.cause import Cause
from steptime.core.errors import FULL_DISK, NoSpace, NotInstalled, SteptimeError, Unsupported
from steptime.core.job import Job
from steptime.core.ranks import Ranks, here
from steptime.core.record import OUTPUT_LINES, Failure
from steptime.ranks import launcher
from steptime.ranks.rendezvous import Rendezvous
from steptime.store.atomic import NotWritten
from steptime.store.journal import Journal, close_failed
from steptime.store.reader import has_ended, last_output


def main() -> int:
    orders, path = sys.argv[1], Path(sys.argv[2])
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    job = Job.from_dict(json.loads(Path(orders).read_text()))
    ranks = here(os.environ) if job.case.ranks > 1 else Ranks()
    try:
        if job.case.ranks > ranks.size == 1:
            return lead(job, path)
        answers = private_output() if job.turns else None
        with Journal(path) if ranks.rank == 0 else Unwritten() as journal:
            journal.begin(job)
            failure = attempt(job, journal, answers, ranks)
            if failure and ranks.size > 1:
                leave(job, path, ranks, failure)
            if failure:
                journal.write_failure(failure)
    except NotWritten as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


class Unwritten(Journal):
    """Of the ranks that tell rank 0 instead."""

    def __init__(self) -> None:
        self._precision = "fp32"

    def __exit__(self, *_: object) -> None: ...

    def begin(self, job: Job) -> None: ...

    def _append(self, lines: list[dict[str, Any]], *, sync: bool = True) -> None: ...


def lead(job: Job, path: Path) -> int:
    """Several ranks are wanted and nobody has started them."""
    if path.exists():
        raise NotWritten(f"The journal {path} is there already.")
    words = [sys.executable, "-P", "-m", "steptime.worker", *sys.argv[1:]]
    try:
        failure = launcher.start(words, job.case, path)
    except SteptimeError as problem:
        failure = Failure(cause=Cause.UNSUPPORTED, reason=str(problem))
    except OSError as problem:
        failure = Failure(
            cause=Cause.NOT_INSTALLED, reason=f"The ranks cannot be started: {problem}."
        )
    if failure and not has_ended(path):
        output = failure.output or last_output(path.with_suffix(".log"))
        close_failed(path, job, replace(failure, output=output))
    return 0


def leave(job: Job, path: Path, ranks: Ranks, failure: Failure) -> NoReturn:
    """At once: a partner that is gone would be waited for at the framework's orderly end. Where nobody of ours waits
    for the ranks, the first that fails closes the journal: the others follow, or are ended by whoever started them."""
    if launcher.LED in os.environ:
        launcher.note(path, ranks.rank, failure)
    elif not has_ended(path):
        close_failed(path, job, launcher.named(launcher.name_of(ranks.rank, ranks.size), failure))
    sys.stderr.flush()
    os._exit(1)


def attempt(job: Job, journal: Journal, answers: IO[str] | None, ranks: Ranks) -> Failure | None:
    """None: the journal is ended with what was found."""
    try:
        perform(job, journal, answers, ranks)
    except NotWritten as problem:
        return Failure(cause=cause_of_writing(problem), reason=str(problem))
    except NoAccuracy as problem:
        return Failure(cause=Cause.CRASHED, reason=str(problem))
    except NoSpace as problem:
        return Failure(cause=Cause.NO_SPACE, reason=str(problem))
    except NotInstalled as problem:
        return Failure(cause=Cause.NOT_INSTALLED, reason=str(problem))
    except SteptimeError as problem:
        return Failure(cause=Cause.UNSUPPORTED, reason=str(problem))
    except MemoryError as problem:
        return told(Cause.OUT_OF_MEMORY, problem)
    except Exception as problem:
        return told(Cause.CRASHED, problem)
    return None


def perform(job: Job, journal: Journal, answers: IO[str] | None, ranks: Ranks) -> None:
    case, rendezvous = job.case, meeting(job, ranks)
    begin = time.perf_counter()
    framework = load_framework(case.framework)
    from steptime.machine import inventory

    software = {
        "steptime": __version__,
        "python": platform.python_version(),
        **framework.versions(),
    }
    imported = time.perf_counter() - begin
    own = (
        case
        if rendezvous is None or case.device == "cpu"
        else replace(case, device=f"cuda:{ranks.local}")
    )
    reason = framework.unsupported(own)
    if reason is not None:
        raise Unsupported(reason)
    network = workloads.load(case.workload).describe(case)
    journal.write_context(machine=inventory.inventory(), software=software, network=network)
    context = tasks.TaskContext(
        replace(job, case=own), journal, framework, imported, answers, rendezvous
    )
    try:
        plugins.load("tasks", job.task).perform(context)
    except Exception as problem:
        if framework.is_out_of_memory(problem):
            raise MemoryError(str(problem)) from problem
        raise


def meeting(job: Job, ranks: Ranks) -> Rendezvous | None:
    """None: there is one rank."""
    if ranks.size == 1:
        return None
    if ranks.size != job.case.ranks:
        raise SteptimeError(
            f"The case has {job.case.ranks} ranks, and {ranks.size} were started for it."
        )
    if job.task != "measure":
        raise Unsupported(f"{job.task} looks at one process; use exchange=none.")
    return Rendezvous(ranks, job.id, patience_seconds=job.protocol.limit_seconds)


def cause_of_writing(problem: NotWritten) -> Cause:
    """A journal that cannot be written: the disk is full, or broken."""
    error = problem.__cause__
    is_full = isinstance(error, OSError) and error.errno in FULL_DISK
    return Cause.NO_SPACE if is_full else Cause.CRASHED


def told(cause: Cause, problem: Exception) -> Failure:
    lines = "".join(traceback.format_exception(problem)).splitlines()
    reason = f"{type(problem).__name__}: {problem}".splitlines()[0]
    return Failure(cause=cause, reason=reason, output="\n".join(lines[-OUTPUT_LINES:]))


def load_framework(name: str) -> ModuleType:
    try:
        return plugins.load("frameworks", name)
    except ImportError as problem:
        line = plugins.constant("frameworks", name, "INSTALL") or f"pip install {name}"
        raise NotInstalled(
            f"{name} is not installed here ({problem}). Install it with: {line}"
        ) from None


def end_with_parent() -> None:
    """A parent that is killed takes its worker along; the check is for one killed before this was asked for."""
    launcher.end_with_parent()
    if os.environ.get(launcher.PARENT, str(os.getppid())) != str(os.getppid()):
        sys.exit("The process that started this worker is gone.")


def private_output() -> IO[str]:
    """Answers to the parent have standard output for themselves; what frameworks print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    sys.exit(main())
