"""Tells a terminal or a log how far a session is. Only between processes: who watches must not disturb measuring."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from steptime.cli.render.format import clock

if TYPE_CHECKING:
    from steptime.core.job import Job
    from steptime.core.record import Attempt


LOG_SECONDS = 60.0  # at least between two lines of a log


class Progress:
    """One line that replaces itself on a terminal; elsewhere, where somebody may read it later, a line now and then."""

    def __init__(self) -> None:
        self._terminal, self._logged = sys.stderr.isatty(), time.monotonic()

    def show(self, text: str) -> None:
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif text and time.monotonic() - self._logged >= LOG_SECONDS:
            self._logged = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.show("")


class SessionWatch(Progress):
    """What `session` reports to. Time left is at least that: noisy cases take more processes."""

    def __init__(self) -> None:
        super().__init__()
        self.finished_processes = 0
        self._seconds = 0.0
        self._started = time.monotonic()

    def started(self, job: Job, done: int, expected: int) -> None:
        self._started = time.monotonic()
        left = clock((expected - done) * self._each(job))
        self.show(f"process {done + 1} of {expected} or more, {left} left: {job.case.label}")

    def finished(self, attempt: Attempt) -> None:
        self._seconds += time.monotonic() - self._started
        self.finished_processes += 1

    def _each(self, job: Job) -> float:
        if self.finished_processes:
            return self._seconds / self.finished_processes
        from steptime.run.estimate import estimate

        return estimate(job.case, job.protocol, {}).least_seconds / job.protocol.processes_least
