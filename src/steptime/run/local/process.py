"""One worker process, from its start to its closed journal, whatever happens to it.

While a worker measures, this process sleeps in the kernel: polling would disturb the steps."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.executor import JournalStore
from steptime.core.job import STAGED_PREFIX, Job
from steptime.core.record import Attempt, Failure
from steptime.machine.leftovers import end_leftovers
from steptime.machine.oom import count_oom_kills, has_grown, is_sigkill
from steptime.run.local.environment import worker_environment
from steptime.run.local.launch import Launch
from steptime.run.local.monitor import start_monitor
from steptime.store import journal, monitor_log, reader
from steptime.store.permissions import open_private, write_private

# A worker that prints without end writes some hundred megabytes in a second.
LOG_CHECK_SECONDS = 2.0
MOST_LOG_BYTES = 64 << 20
KEPT_LOG_BYTES = 1 << 20
LOG_IS_CUT = b"[The log was too long: only its end is kept.]\n"
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
TIME_ADVICE = "If it only needs longer, use a smaller batch_size or raise protocol.limit_seconds."
SIGNAL_SECONDS = 2.0  # from the first to the last process of a Slurm job that gets a signal


class WorkerFiles(NamedTuple):
    """Only the journal stays after a success; the log stays after a failure, too."""

    journal: Path
    job: Path
    log: Path

    @classmethod
    def beside(cls, journal_path: Path) -> WorkerFiles:
        return cls(
            journal=journal_path,
            job=journal_path.with_suffix(".case.json"),
            log=journal_path.with_suffix(".log"),
        )


@dataclass
class WorkerProcess:
    launch: Launch
    job: Job
    files: WorkerFiles
    process: subprocess.Popen[bytes]
    exit_file: int  # a pidfd: readable when the process has ended
    oom_kills: int | None  # of this control group, before the worker started
    monitor: subprocess.Popen[bytes] | None
    cache: tempfile.TemporaryDirectory[str] | None
    failure: Failure | None = None
    closed: Attempt | None = None

    @classmethod
    def start(cls, launch: Launch, job: Job, store: JournalStore) -> WorkerProcess:
        cache = _make_cold_cache(job)
        environment = worker_environment(job, os.environ, cache.name if cache else "")
        facts = {**job.environment, **environment.facts, **launch.describe()}
        job = replace(job, environment=facts)
        files = WorkerFiles.beside(store.journal(job.id))
        variables = launch.variables(environment.variables)
        command = launch.command(job, variables, store.path)
        oom_kills = count_oom_kills()
        with (
            _explain_start_errors(command[0], store.path),
            # Appended to, so that it can be cut while the worker writes.
            open(files.log, "ab", opener=open_private) as log,
        ):
            write_private(files.job, json.dumps(job.to_dict()))
            worker = ["-P", "-m", "steptime.worker", str(files.job), str(files.journal)]
            process = subprocess.Popen(
                [*command, *worker],
                stdin=subprocess.PIPE if job.turns else subprocess.DEVNULL,
                stdout=subprocess.PIPE if job.turns else log,
                stderr=log,
                bufsize=0,
                env=variables,
                # A group of its own, so that its children can be ended with it.
                start_new_session=True,
            )
        return cls(
            launch=launch,
            job=job,
            files=files,
            process=process,
            exit_file=os.pidfd_open(process.pid),
            oom_kills=oom_kills,
            monitor=start_monitor(job, process.pid, files.journal),
            cache=cache,
        )

    @contextlib.contextmanager
    def supervise(self) -> Iterator[None]:
        """If anything interrupts the block, end the worker and close its journal."""
        try:
            yield
        except BaseException:
            self.end(Cause.CANCELLED, "Interrupted.")
            # The interruption matters more than a full disk.
            with contextlib.suppress(SteptimeError):
                self.attempt()
            raise

    def wait(self) -> None:
        if not self._readable(self.exit_file):
            self._time_out("No result after")
        elif self._was_terminated():
            # Slurm signals all processes of a job. If our signal is still on its way, wait for
            # it: it says more than a dead worker.
            time.sleep(SIGNAL_SECONDS)

    def _was_terminated(self) -> bool:
        """Whether another process sent SIGTERM to the worker."""
        if self.process.returncode is not None:
            return False
        # The worker is not reaped yet, so that its number stays its own until its children ended.
        status = os.waitid(os.P_PIDFD, self.exit_file, os.WEXITED | os.WNOWAIT)
        if status is None:
            return False
        return status.si_code == os.CLD_KILLED and status.si_status == signal.SIGTERM

    def receive(self, line: str) -> bool:
        """Wait for this line. False if the worker ends, hangs, or writes another line instead."""
        assert self.process.stdout is not None
        if not self._readable(self.process.stdout.fileno()):
            self._time_out(f"Not {line} after")
            return False
        return self.process.stdout.readline().strip() == line.encode()

    def forward_lines(self, on_line: Callable[[str], None]) -> None:
        """Pass on what the worker writes until it ends. A worker that is silent too long hangs."""
        assert self.process.stdout is not None
        while self._readable(self.process.stdout.fileno()):
            line = self.process.stdout.readline()
            if not line:
                return
            on_line(line.decode(errors="replace").strip())
        self._time_out("No line for")

    def send(self, line: str) -> bool:
        """False if the worker is gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            return False
        return True

    def _time_out(self, what: str) -> None:
        limit = self.job.protocol.limit_seconds
        self.end(Cause.TIMED_OUT, f"{what} {limit:g} s: it was ended. {TIME_ADVICE}")

    def end(self, cause: Cause, reason: str) -> None:
        """Kill the worker. An earlier failure stays the reason."""
        self.failure = self.failure or Failure(cause=cause, reason=reason)
        self._end_group()

    def attempt(self) -> Attempt:
        """What the journal says. If the worker could not close it, it is closed here."""
        if self.closed is not None:
            return self.closed
        self._end_group()
        if not reader.has_ended(self.files.journal):
            failure = self.failure or self._exit_failure()
            failure = replace(failure, output=reader.last_output(self.files.log))
            journal.close_failed(self.files.journal, self.job, failure)
        self.closed = reader.read(self.files.journal)
        if self.closed is None:
            raise SteptimeError(
                f"The journal {self.files.journal} cannot be read back. "
                "Is another version of steptime running?"
            )
        self._clean_up(failed=self.closed.failure is not None)
        return self.closed

    def _exit_failure(self) -> Failure:
        code = self.process.returncode
        if is_sigkill(code) and has_grown(self.oom_kills, count_oom_kills()):
            reason = "The kernel killed the worker because memory ran out."
            return Failure(cause=Cause.OUT_OF_MEMORY, reason=reason)
        if code >= 0:
            reason = f"The worker ended with exit code {code} and no result."
            last_line = reader.last_output(self.files.log).strip().rpartition("\n")[2]
            if last_line:
                reason += f" Its last line: {last_line}"
            return Failure(cause=Cause.CRASHED, reason=reason)
        if code == -signal.SIGHUP:
            reason = "The worker was ended by SIGHUP: its terminal or its session was closed."
            return Failure(cause=Cause.CANCELLED, reason=reason)
        return Failure(
            cause=Cause.CRASHED, reason=f"The worker was killed by {_signal_name(-code)}."
        )

    def _readable(self, file: int) -> bool:
        """Sleep until there is something to read, or until the job's time limit.

        Meanwhile the log is kept from filling the disk."""
        poll = select.poll()
        poll.register(file, select.POLLIN)
        end = time.monotonic() + self.job.protocol.limit_seconds
        while True:
            seconds_left = max(0.0, end - time.monotonic())
            if poll.poll(1000 * min(seconds_left, LOG_CHECK_SECONDS)):
                return True
            if seconds_left <= LOG_CHECK_SECONDS:
                return False
            cut_log(self.files.log)

    def _end_group(self) -> None:
        """End the worker, if it still runs, and all children that it left."""
        if self.process.returncode is not None:
            # It was reaped, so its number may belong to another process by now.
            return
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # A child that began a session of its own is in no group of ours.
        end_leftovers(self.job.id)
        if self.process.returncode:
            # A client that died leaves its container, also one that it had not started yet.
            self.launch.end(self.job)
        os.close(self.exit_file)
        if self.monitor is not None:
            self.monitor.kill()
            self.monitor.wait()

    def _clean_up(self, *, failed: bool) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        if self.cache is not None:
            self.cache.cleanup()
        for copy in _staged_copies(self.job):
            shutil.rmtree(copy, ignore_errors=True)
        monitor_log.log_path(self.files.journal).unlink(missing_ok=True)
        self.files.job.unlink(missing_ok=True)
        log_is_empty = self.files.log.stat().st_size == 0
        if log_is_empty or not failed:
            self.files.log.unlink()


def cut_log(log: Path) -> None:
    """Keep the end of a log that has become too long."""
    if log.stat().st_size <= MOST_LOG_BYTES:
        return
    with log.open("r+b") as file:
        file.seek(-KEPT_LOG_BYTES, os.SEEK_END)
        end = file.read(KEPT_LOG_BYTES)
        file.truncate(0)
    # On a full disk the end is lost, too.
    with contextlib.suppress(OSError), log.open("ab") as file:
        file.write(LOG_IS_CUT + end)


def _make_cold_cache(job: Job) -> tempfile.TemporaryDirectory[str] | None:
    """An empty folder for compilers that must find nothing from earlier runs."""
    if job.case.compile_cache != "cold":
        return None
    return tempfile.TemporaryDirectory(prefix="steptime-cold-", ignore_cleanup_errors=True)


@contextlib.contextmanager
def _explain_start_errors(program: str, store: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        sentence = f"A worker could not be started with {program}"
        if problem.errno in UNWRITABLE:
            sentence = f"{store} cannot be written"
        raise SteptimeError(f"{sentence}: {problem.strerror}.") from problem


def _staged_copies(job: Job) -> list[Path]:
    """What a killed worker has left on its staging tier."""
    tier = job.options.get("tier")
    if not tier:
        return []
    folder = Path(os.path.expanduser(os.path.expandvars(tier)))
    return list(folder.glob(f"{STAGED_PREFIX}{job.id}-*"))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
