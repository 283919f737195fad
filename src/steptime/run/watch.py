"""The interface that reports how far a session is.

It is called only between processes, because output must not disturb a measurement."""

from __future__ import annotations

from typing import Protocol

from steptime.core.job import Job
from steptime.core.record import Attempt


class Watch(Protocol):
    def on_start(self, job: Job, done: int, expected: int) -> None:
        """`expected` is the least: results decide how many more processes it takes."""

    def on_finish(self, attempt: Attempt) -> None:
        """By now the attempt is safe on the disk."""


class NullWatch:
    def on_start(self, job: Job, done: int, expected: int) -> None: ...

    def on_finish(self, attempt: Attempt) -> None: ...
