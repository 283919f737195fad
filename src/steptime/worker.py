"""`python -m steptime.worker CASE.json JOURNAL.jsonl`: perform one task on one case.

Only this process imports a framework."""

from __future__ import annotations

import atexit
import json
import os
import platform
import signal
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import IO, NoReturn, cast

from steptime import __version__, plugins, tasks, workloads
from steptime.core.accuracy import NoAccuracy
from steptime.core.cause import Cause
from steptime.core.errors import (
    FULL_DISK,
    NoSpace,
    NotInstalled,
    SteptimeError,
    UnreadableFile,
    Unsupported,
)
from steptime.core.job import Job
from steptime.core.program import Framework
from steptime.core.ranks import Ranks, read_ranks
from steptime.core.record import OUTPUT_LINES, Failure
from steptime.core.stopwatch import Stopwatch
from steptime.machine.leftovers import die_with_parent
from steptime.machine.process_tree import process_age_seconds
from steptime.ranks import launcher
from steptime.ranks.rendezvous import Rendezvous
from steptime.store.atomic import NotWritten
from steptime.store.journal import InvalidRecord, Journal, NullJournal, close_failed
from steptime.store.reader import has_ended, last_output


def main() -> int:
    job_path = Path(sys.argv[1])
    journal_path = Path(sys.argv[2])
    end_with_parent()
    # Ctrl-C ends the worker without a traceback; its parent closes the journal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    job = Job.from_dict(json.loads(job_path.read_text()))
    ranks = read_ranks(os.environ) if job.case.ranks > 1 else Ranks()
    try:
        if job.case.ranks > 1 and ranks.size == 1:
            launch_ranks(job, journal_path)
        else:
            run_rank(job, journal_path, ranks)
    except NotWritten as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def launch_ranks(job: Job, journal_path: Path) -> None:
    """The case has several ranks and no launcher has started them, so start them here."""
    if journal_path.exists():
        raise NotWritten(f"The journal {journal_path} already exists.")
    command = [sys.executable, "-P", "-m", "steptime.worker", *sys.argv[1:]]
    try:
        failure = launcher.run_ranks(command, job.case, journal_path)
    except SteptimeError as problem:
        failure = Failure(cause=Cause.UNSUPPORTED, reason=str(problem))
    except OSError as problem:
        reason = f"The ranks cannot be started: {problem}."
        failure = Failure(cause=Cause.NOT_INSTALLED, reason=reason)
    if failure and not has_ended(journal_path):
        output = failure.output or last_output(journal_path.with_suffix(".log"))
        close_failed(journal_path, job, replace(failure, output=output))


def run_rank(job: Job, journal_path: Path, ranks: Ranks) -> None:
    """Perform the task in this process. Only rank 0 writes the journal."""
    answers = reserve_stdout() if job.turns else None
    sink = Journal(journal_path) if ranks.rank == 0 else NullJournal()
    with sink as journal:
        journal.begin(job)
        try:
            perform_task(job, journal, answers, ranks)
        except Exception as problem:
            failure = classify_failure(problem)
            if ranks.size > 1:
                abort_rank(job, journal_path, ranks, failure)
            journal.write_failure(failure)


def abort_rank(job: Job, journal_path: Path, ranks: Ranks, failure: Failure) -> NoReturn:
    """Record the failure and exit at once.

    An orderly exit of the framework would wait for a partner that may be gone. If another
    launcher started the ranks, the first rank that fails closes the journal."""
    if launcher.LAUNCHED in os.environ:
        launcher.write_note(journal_path, ranks.rank, failure)
    elif not has_ended(journal_path):
        name = launcher.rank_name(ranks.rank, ranks.size)
        close_failed(journal_path, job, launcher.add_rank_name(name, failure))
    sys.stderr.flush()
    os._exit(1)


def classify_failure(problem: Exception) -> Failure:
    """Errors with a sentence of their own keep it; all others keep the end of their traceback."""
    if isinstance(problem, NotWritten):
        return Failure(cause=write_error_cause(problem), reason=str(problem))
    if isinstance(problem, NoAccuracy | InvalidRecord):
        return Failure(cause=Cause.CRASHED, reason=str(problem))
    if isinstance(problem, NoSpace):
        return Failure(cause=Cause.NO_SPACE, reason=str(problem))
    if isinstance(problem, UnreadableFile):
        return Failure(cause=Cause.UNREADABLE, reason=str(problem))
    if isinstance(problem, NotInstalled):
        return Failure(cause=Cause.NOT_INSTALLED, reason=str(problem))
    if isinstance(problem, SteptimeError):
        return Failure(cause=Cause.UNSUPPORTED, reason=str(problem))
    if isinstance(problem, MemoryError):
        return describe_failure(Cause.OUT_OF_MEMORY, problem)
    return describe_failure(Cause.CRASHED, problem)


def perform_task(
    job: Job, journal: Journal | NullJournal, answers: IO[str] | None, ranks: Ranks
) -> None:
    case = job.case
    stopwatch = Stopwatch(process_age_seconds())
    stopwatch.lap("start")
    rendezvous = join_ranks(job, ranks)
    stopwatch.lap("rendezvous")
    framework = load_framework(case.framework)
    from steptime.machine import inventory

    software = {
        "steptime": __version__,
        "python": platform.python_version(),
        **framework.versions(),
    }
    if hasattr(framework, "import_for"):
        framework.import_for(case)
    stopwatch.lap("import")
    # Each rank uses the GPU with its number on the node.
    rank_case = case
    if rendezvous is not None and case.device != "cpu":
        rank_case = replace(case, device=f"cuda:{ranks.local}")
    reason = framework.unsupported(rank_case)
    if reason is not None:
        raise Unsupported(reason)
    network = workloads.load(case.workload).describe(case)
    machine = inventory.inventory()
    peaks = job.options.get("peaks", {}).get(machine["fingerprint"])
    if peaks:
        machine["peaks"] = peaks
    program = plugins.program_digest(case.framework)
    journal.write_context(machine=machine, software=software, network=network, program=program)
    stopwatch.lap("describe")
    rank_job = replace(job, case=rank_case)
    context = tasks.TaskContext(rank_job, journal, framework, answers, rendezvous, stopwatch)
    try:
        plugins.load("tasks", job.task).perform(context)
    except Exception as problem:
        # Every framework has its own exception for a full device.
        if framework.is_out_of_memory(problem):
            raise MemoryError(str(problem)) from problem
        raise


def join_ranks(job: Job, ranks: Ranks) -> Rendezvous | None:
    """None: there is only one rank."""
    if ranks.size == 1:
        return None
    if ranks.size != job.case.ranks:
        raise SteptimeError(
            f"The case has {job.case.ranks} ranks, but {ranks.size} were started for it."
        )
    if job.task != "measure":
        raise Unsupported(f"The task {job.task} runs in one process; use exchange=none.")
    return Rendezvous(ranks, job.id, patience_seconds=job.protocol.limit_seconds)


def write_error_cause(problem: NotWritten) -> Cause:
    """The disk of the journal is full, or broken."""
    error = problem.__cause__
    is_full = isinstance(error, OSError) and error.errno in FULL_DISK
    return Cause.NO_SPACE if is_full else Cause.CRASHED


def describe_failure(cause: Cause, problem: Exception) -> Failure:
    # Only the end is kept: a framework's traceback can fill pages.
    lines = "".join(traceback.format_exception(problem)).splitlines()
    reason = f"{type(problem).__name__}: {problem}".splitlines()[0]
    return Failure(cause=cause, reason=reason, output="\n".join(lines[-OUTPUT_LINES:]))


def load_framework(name: str) -> Framework:
    try:
        return cast(Framework, plugins.load("frameworks", name))
    except ImportError as problem:
        command = plugins.read_constant("frameworks", name, "INSTALL") or f"pip install {name}"
        raise NotInstalled(
            f"{name} is not installed here ({problem}). Install it with: {command}"
        ) from None


def end_with_parent() -> None:
    """Ask the kernel to kill this worker if its parent dies."""
    die_with_parent()
    # The parent may have died before the request; then this process has another parent by now.
    parent = str(os.getppid())
    if os.environ.get(launcher.PARENT, parent) != parent:
        sys.exit("The process that started this worker is gone.")


def reserve_stdout() -> IO[str]:
    """A file for answers to the parent alone. What frameworks print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    # The descriptor itself, because native libraries print without Python's sys.stdout.
    os.dup2(2, 1)
    return answers


def end_process(status: int) -> NoReturn:
    """End without the interpreter's teardown, which takes 0.8 s with PyTorch for memory that the
    kernel frees at once. What is registered to run at the end still runs."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    end_process(main())
