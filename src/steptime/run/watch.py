"""Who wants to be told how far a session is. Only between processes: telling must not disturb what is measured."""

from __future__ import annotations

from typing import Protocol

from steptime.core.job import Job
from steptime.core.record import Attempt


class Watch(Protocol):
    def started(self, job: Job, done: int, expected: int) -> None:
        """`expected` is the least: how many more it takes shows only as results come in."""

    def finished(self, attempt: Attempt) -> None:
        """By now it is safe on the disk."""


class NullWatch:
    def started(self, job: Job, done: int, expected: int) -> None: ...

    def finished(self, attempt: Attempt) -> None: ...
