"""One worker, from its start to its closed journal, whatever happens to it. Sleeps in the kernel meanwhile."""

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
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.record import Attempt, Failure
from steptime.machine.oom import count_oom_kills
from steptime.run.local.container import ContainerLaunch
from steptime.run.local.environment import for_job
from steptime.run.local.launch import Launch
from steptime.run.local.monitor import start as start_monitor
from steptime.store import journal, monitor_log, reader
from steptime.store.folder import FolderStore

MOST_MILLISECONDS = 2**31 - 1  # that the kernel can be asked to wait
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
SIGNAL_SECONDS = 2.0  # between the first and the last process of a job that is told to end


class WorkerProcess:
    """One process with its journal, and beside that its orders and what it prints."""

    def __init__(self, launch: Launch | ContainerLaunch, job: Job, store: FolderStore) -> None:
        cold = job.case.compile_cache == "cold"
        self.cache = (
            tempfile.TemporaryDirectory(prefix="steptime-cold-", ignore_cleanup_errors=True)
            if cold
            else None
        )
        variables, told = for_job(job, os.environ, self.cache.name if self.cache else "")
        self.job = replace(job, environment={**job.environment, **told, **launch.told()})
        self.launch, self.path = launch, store.journal(job.id)
        self.orders, self.log = self.path.with_suffix(".case.json"), self.path.with_suffix(".log")
        self.failure: Failure | None = None
        self.closed: Attempt | None = None
        self.oom_kills = count_oom_kills()
        variables = launch.variables(variables)
        words = launch.line(self.job, variables, store.path)
        try:
            self.orders.write_text(json.dumps(self.job.to_dict()))
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    [*words, "-P", "-m", "steptime.worker", str(self.orders), str(self.path)],
                    stdin=subprocess.PIPE if job.turns else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if job.turns else log,
                    stderr=log,
                    bufsize=0,
                    env=variables,
                    start_new_session=True,  # so that its own children can be ended with it
                )
        except OSError as problem:
            full, lost = (
                f"{store.path} cannot be written",
                f"A worker could not be started with {words[0]}",
            )
            why = full if problem.errno in UNWRITABLE else lost
            raise SteptimeError(f"{why}: {problem.strerror}.") from problem
        self.ended = os.pidfd_open(self.process.pid)
        self.monitor = start_monitor(self.job, self.process.pid, self.path)

    @contextlib.contextmanager
    def supervised(self) -> Iterator[None]:
        """Whatever interrupts us, the worker does not outlive it and the journal says what happened."""
        try:
            yield
        except BaseException:
            self.end(Cause.CANCELLED, "Interrupted.")
            with contextlib.suppress(
                SteptimeError
            ):  # what interrupted us matters more than a full disk
                self.attempt()
            raise

    def wait(self) -> None:
        if not self._readable(self.ended):
            self.end(
                Cause.TIMED_OUT,
                f"No result after {self.job.protocol.limit_seconds:g} s: it was ended.",
            )
        elif self._was_told_to_end():
            time.sleep(
                SIGNAL_SECONDS
            )  # the same signal may be on its way to us, and then says more than a dead worker

    def _was_told_to_end(self) -> bool:
        """By somebody else. Without reaping it: its number must stay its own until its children are ended."""
        if self.process.returncode is not None:
            return False
        found = os.waitid(os.P_PIDFD, self.ended, os.WEXITED | os.WNOWAIT)
        return found is not None and (found.si_code, found.si_status) == (
            os.CLD_KILLED,
            signal.SIGTERM,
        )

    def heard(self, word: str) -> bool:
        """Waits for this line; False when the worker ends or hangs instead."""
        assert self.process.stdout is not None
        if not self._readable(self.process.stdout.fileno()):
            self.end(
                Cause.TIMED_OUT,
                f"Not {word} after {self.job.protocol.limit_seconds:g} s: it was ended.",
            )
            return False
        return self.process.stdout.readline().strip() == word.encode()

    def lines(self) -> Iterator[str]:
        """What it says until it ends; silent for too long, it hangs and is ended."""
        assert self.process.stdout is not None
        while self._readable(self.process.stdout.fileno()):
            line = self.process.stdout.readline()
            if not line:
                return
            yield line.decode(errors="replace").strip()
        self.end(
            Cause.TIMED_OUT, f"Not a word for {self.job.protocol.limit_seconds:g} s: it was ended."
        )

    def tell(self, word: str) -> bool:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(word.encode() + b"\n")
        except BrokenPipeError:
            return False
        return True

    def end(self, cause: Cause, reason: str) -> None:
        self.failure = self.failure or Failure(cause=cause, reason=reason)
        self._end_group()
        self.launch.end(self.job)

    def attempt(self) -> Attempt:
        """What the journal says; closes it first where the worker could not."""
        if self.closed is not None:
            return self.closed
        self._end_group()
        if not reader.has_ended(self.path):
            failure = self.failure or self._why()
            journal.close_failed(
                self.path, self.job, replace(failure, output=reader.last_output(self.log))
            )
        self.closed = reader.read(self.path)
        if self.closed is None:
            raise SteptimeError(
                f"The journal {self.path} cannot be read back. Is another version of steptime running?"
            )
        self._tidy(failed=self.closed.failure is not None)
        return self.closed

    def _why(self) -> Failure:
        code = self.process.returncode
        if code >= 0:
            words = reader.last_output(self.log).strip().rpartition("\n")[2]
            said = f" Its last words: {words}" if words else ""
            return Failure(
                cause=Cause.CRASHED,
                reason=f"The worker ended with exit code {code} and no result.{said}",
            )
        if code == -signal.SIGKILL and count_oom_kills() > self.oom_kills:
            return Failure(
                cause=Cause.OUT_OF_MEMORY, reason="The kernel killed the worker for want of memory."
            )
        name = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
        return Failure(cause=Cause.CRASHED, reason=f"The worker was killed by {name}.")

    def _readable(self, file: int) -> bool:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        return bool(poll.poll(min(self.job.protocol.limit_seconds * 1000, MOST_MILLISECONDS)))

    def _end_group(self) -> None:
        """The worker, if it still lives, and every child it left behind."""
        if (
            self.process.returncode is None
        ):  # not yet waited for, so nobody else can have got its number
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            os.close(self.ended)
            if self.monitor is not None:
                self.monitor.kill()
                self.monitor.wait()

    def _tidy(self, *, failed: bool) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        if self.cache is not None:
            self.cache.cleanup()
        for copy in _copies(self.job):
            shutil.rmtree(copy, ignore_errors=True)
        monitor_log.log_path(self.path).unlink(missing_ok=True)
        self.orders.unlink(missing_ok=True)
        if not failed or not self.log.stat().st_size:
            self.log.unlink()


def _copies(job: Job) -> list[Path]:
    """What a worker that was killed has left on its tier."""
    tier = job.options.get("tier")
    return (
        list(Path(os.path.expanduser(os.path.expandvars(tier))).glob(f"steptime-data-{job.id}-*"))
        if tier
        else []
    )
