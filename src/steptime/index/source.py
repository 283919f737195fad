"""Where the guide's answers come from: a store, and the index that is made of it and follows it."""

from __future__ import annotations

import contextlib
import errno
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from steptime.analysis.certificates import TASK, Certificate, certificate
from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt, Record
from steptime.index.cache import Cache
from steptime.index.index import Index
from steptime.index.table import duckdb
from steptime.index.update import Intake
from steptime.store.machines import peak_rates
from steptime.store.readable import ReadableStore

FRESH_SECONDS = 1.0  # looking for news is cheap, but not for every click
MOST_KEPT = 200  # runs that somebody looked at


class Source:
    """Looks for news when somebody asks, and only then."""

    def __init__(self, store: ReadableStore, cache: Cache | None = None) -> None:
        self.store, self.cache = store, cache
        with _room():
            self.index = cache.opened() if cache else Index()
            self._intake = Intake(store, self.index)
        self.trouble = ""  # why the latest look for news failed
        self._due, self._filled, self._busy = 0.0, False, threading.Lock()
        self._kept: dict[str, Record | ForeignRun] = {}
        self._attempts: dict[
            str, Attempt
        ] = {}  # of other tasks than measuring: few, and asked for by every page

    def refresh(self) -> None:
        """Takes in what is new. Whoever asks while another does so is answered from what is there."""
        if not self._busy.acquire(blocking=not self._filled):
            return
        try:
            if time.monotonic() >= self._due:
                self._look()
                self._due = time.monotonic() + FRESH_SECONDS
        finally:
            self._busy.release()

    def expect_news(self) -> None:
        """The next who asks looks at once."""
        self._due = 0.0

    def close(self) -> None:
        """Leaves to the next process what this one made of the store."""
        with self._busy:
            if self.cache and self._filled:
                self.cache.publish(self.index, force=True)

    def _look(self) -> None:
        began = time.monotonic()
        try:
            with _room():
                changed = self._intake.take(self.store.news(self._intake.ledger))
        except SteptimeError as problem:
            if not self._filled:
                raise
            self.trouble = str(problem)
            return
        self._filled, self.trouble = True, ""
        if changed:
            self._kept.clear()
            if self.cache:
                self.cache.publish(self.index, worked_seconds=time.monotonic() - began)

    def found(self, run: str) -> Record | ForeignRun | None:
        """What a row was made of."""
        if run not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept |= self.all_found([run])
        return self._kept.get(run)

    def all_found(self, runs: Sequence[str]) -> dict[str, Record | ForeignRun]:
        """The same of many rows, each file read once."""
        foreign = self.store.foreign_at(self.index.places(runs))
        return {**{run.id: run for run in foreign}, **self._records(runs)}

    def _records(self, runs: Sequence[str]) -> dict[str, Record]:
        behind = self._intake.ledger.behind(runs)
        found = self._read(behind)
        groups = {
            row: [found[name] for name in members if name in found]
            for row, members in behind.items()
        }
        return {
            row: Record(attempts=tuple(sorted(group, key=lambda one: one.process)))
            for row, group in groups.items()
            if group
        }

    def lasts(self, runs: Sequence[str]) -> dict[str, Attempt]:
        """The last attempt of each own one among these, by their row: far less to read than all."""
        behind = self._intake.ledger.behind(runs, last=True)
        found = self._read(behind)
        return {
            row: found[name] for row, members in behind.items() for name in members if name in found
        }

    def _read(self, behind: dict[str, dict[str, str]]) -> dict[str, Attempt]:
        places = {name: place for members in behind.values() for name, place in members.items()}
        return {one.id: one for one in self.store.attempts_at(places)} if places else {}

    def attempts(self, task: str) -> list[Attempt]:
        """Of another task than measuring, oldest first."""
        places = self._intake.ledger.of_task(task)
        if missing := {name: place for name, place in places.items() if name not in self._attempts}:
            self._attempts |= {one.id: one for one in self.store.attempts_at(missing)}
        return [self._attempts[name] for name in sorted(places) if name in self._attempts]

    def certificates(self) -> list[Certificate]:
        self.refresh()
        found = [certificate(attempt) for attempt in self.attempts(TASK)]
        return [one for one in found if one is not None]

    def machines(self) -> list[dict[str, Any]]:
        """Those whose peaks were measured into this store."""
        return self.store.machines()

    def peaks(self, machine: dict[str, Any], device: str) -> dict[str, float]:
        """What this machine was measured to reach: FLOP/s by precision, and bytes/s of a copy."""
        for measured in self.machines():
            if measured["fingerprint"] == machine.get("fingerprint"):
                return peak_rates(measured, device)
        return {}


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """The index lies on a disk that may refuse, and not on the store's."""
    try:
        yield
    except (OSError, duckdb().Error) as problem:
        if isinstance(problem, OSError) and problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        reason, folder = str(problem).partition("\n")[0], tempfile.gettempdir()
        advice = f"It lies in {folder}: make room there, or name another folder with TMPDIR."
        raise SteptimeError(f"The guide's index cannot be kept: {reason}. {advice}") from problem
