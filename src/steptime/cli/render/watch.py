"""Shows how far a session is, on a terminal or in a log.

Only between processes: drawing must not disturb a measurement."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Self

from steptime.core.errors import UnreadableFile
from steptime.core.format import rough_duration

if TYPE_CHECKING:
    from steptime.core.job import Job
    from steptime.core.record import Attempt

# The least time between two lines of a log.
LOG_SECONDS = 60.0


class Progress:
    """One line that replaces itself on a terminal; in a log a new line at most once a minute."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._logged = time.monotonic()

    def show(self, text: str) -> None:
        if self._is_terminal:
            # Return to the start of the line and clear it.
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif text and time.monotonic() - self._logged >= LOG_SECONDS:
            self._logged = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.show("")


class SessionWatch(Progress):
    """The progress of `session`. The time left is a minimum: noisy cases take more processes."""

    def __init__(self) -> None:
        super().__init__()
        self.finished_processes = 0
        self.stage_seconds: Counter[str] = Counter()
        self._seconds = 0.0
        self._began = self._started = time.monotonic()

    @property
    def total_seconds(self) -> float:
        return time.monotonic() - self._began

    def on_start(self, job: Job, done: int, expected: int) -> None:
        self._started = time.monotonic()
        position = f"process {done + 1} of {expected} or more"
        seconds = self._seconds_per_process(job)
        if seconds is not None:
            position += f", {rough_duration((expected - done) * seconds)} left"
        self.show(f"{position}: {job.case.label}")

    def on_finish(self, attempt: Attempt) -> None:
        self._seconds += time.monotonic() - self._started
        self.finished_processes += 1
        # A process that failed, or whose task is another, has none.
        self.stage_seconds.update(attempt.findings.get("seconds", {}))

    def _seconds_per_process(self, job: Job) -> float | None:
        """None: the user's file of the network cannot be read."""
        if self.finished_processes:
            return self._seconds / self.finished_processes
        from steptime.run.estimate import estimate

        try:
            guess = estimate(job.case, job.protocol, {})
        except UnreadableFile:
            return None
        return guess.least_seconds / job.protocol.processes_least


class CertifyWatch(Progress):
    def on_start(self, job: Job, done: int, expected: int) -> None:
        case = job.case
        precision = job.options["precision"]
        if job.options.get("write"):
            label = f"the reference of {case.workload} {precision}"
        else:
            label = f"{case.workload} {case.framework} {case.mode} {precision}"
        self.show(f"{done + 1} of {expected}: {label}")

    def on_finish(self, attempt: Attempt) -> None: ...
