"""A store together with the index made of it: what charts, reports, exports and pages query."""

from __future__ import annotations

import contextlib
import errno
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steptime.analysis.certificates import TASK, Certificate, read_certificate
from steptime.analysis.session_deviation import SessionValue
from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt, Record
from steptime.index.cache import Cache
from steptime.index.index import Index
from steptime.index.rows import Row
from steptime.index.table import duckdb
from steptime.index.update import IndexUpdater
from steptime.store.machines import peak_rates
from steptime.store.readable import ReadableStore

# Looking for changes is cheap, but not cheap enough for every click.
FRESH_SECONDS = 1.0
# Runs kept in memory after a page showed them.
MOST_KEPT_RUNS = 200
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class Workspace:
    """Looks for changes of the store when it is queried, and only then."""

    def __init__(self, store: ReadableStore, cache: Cache | None = None) -> None:
        self.store = store
        self.cache = cache
        with _explain_full_disk():
            self._index = cache.open() if cache else Index()
            self._updater = IndexUpdater(store, self._index)
        # Why the latest look for changes failed.
        self.trouble = ""
        self._next_look = 0.0
        self._filled = False
        self._busy = threading.Lock()
        self._runs: dict[str, Record | ForeignRun] = {}
        # Attempts of other tasks than measuring: they are few, and every page needs them.
        self._attempts: dict[str, Attempt] = {}

    @property
    def index(self) -> Index:
        """The index, with what is new in the store."""
        self.refresh()
        return self._index

    def refresh(self) -> None:
        """Adds what is new. While another thread does so, the index answers as it is."""
        if not self._busy.acquire(blocking=not self._filled):
            return
        try:
            if time.monotonic() >= self._next_look:
                self._look_for_changes()
                self._next_look = time.monotonic() + FRESH_SECONDS
        finally:
            self._busy.release()

    def expect_changes(self) -> None:
        """Makes the next query look for changes at once."""
        self._next_look = 0.0

    def close(self) -> None:
        """Publishes the index for the next process."""
        with self._busy:
            if self.cache and self._filled:
                self.cache.publish(self._index, force=True)

    def _look_for_changes(self) -> None:
        began = time.monotonic()
        try:
            with _explain_full_disk():
                changed = self._updater.update(self.store.news(self._updater.ledger))
        except SteptimeError as problem:
            # The first look must succeed; later ones leave the index as it was.
            if not self._filled:
                raise
            self.trouble = str(problem)
            return
        self._filled = True
        self.trouble = ""
        if not changed:
            return
        # A record may have gained an attempt.
        self._runs.clear()
        if self.cache:
            self.cache.publish(self._index, worked_seconds=time.monotonic() - began)

    def find_row(self, id_part: str) -> Row:
        """The row of the only run whose id is, begins or ends with `id_part`."""
        rows = self.index.find_rows(id_part)
        if not rows:
            raise SteptimeError(f"No run has the id {id_part!r}.")
        if len(rows) > 1:
            raise SteptimeError(f"Several runs have the id {id_part!r}.")
        return rows[0]

    def find_run(self, run_id: str) -> Record | ForeignRun | None:
        """What a row was made of."""
        self.refresh()
        if run_id not in self._runs:
            # Simple and rare: a page needs only one of them.
            if len(self._runs) >= MOST_KEPT_RUNS:
                self._runs.clear()
            self._runs |= self.find_runs([run_id])
        return self._runs.get(run_id)

    def find_runs(self, run_ids: Sequence[str]) -> dict[str, Record | ForeignRun]:
        """What each of these rows was made of, by id. Each file is read once."""
        runs: dict[str, Record | ForeignRun] = {}
        for run in self.store.foreign_at(self._index.places(run_ids)):
            runs[run.id] = run
        members_by_row = self._updater.ledger.attempts_of_rows(run_ids)
        attempts = self._read_attempts(members_by_row.values())
        for row, members in members_by_row.items():
            group = [attempts[name] for name in members if name in attempts]
            if group:
                group.sort(key=lambda attempt: attempt.process)
                runs[row] = Record(attempts=tuple(group))
        return runs

    def last_attempts(self, run_ids: Sequence[str]) -> dict[str, Attempt]:
        """The last attempt of each own run among these, by row: far less to read than all."""
        members_by_row = self._updater.ledger.attempts_of_rows(run_ids, last=True)
        attempts = self._read_attempts(members_by_row.values())
        last = {}
        for row, members in members_by_row.items():
            for name in members:
                if name in attempts:
                    last[row] = attempts[name]
        return last

    def _read_attempts(self, groups: Iterable[dict[str, str]]) -> dict[str, Attempt]:
        places: dict[str, str] = {}
        for members in groups:
            places |= members
        if not places:
            return {}
        return {attempt.id: attempt for attempt in self.store.attempts_at(places)}

    def attempts(self, task: str) -> list[Attempt]:
        """Attempts of another task than measuring, oldest first."""
        locations = self._updater.ledger.attempts_of_task(task)
        unread = {name: at for name, at in locations.items() if name not in self._attempts}
        if unread:
            for attempt in self.store.attempts_at(unread):
                self._attempts[attempt.id] = attempt
        return [self._attempts[name] for name in sorted(locations) if name in self._attempts]

    def certificates(self) -> list[Certificate]:
        self.refresh()
        certificates = (read_certificate(attempt) for attempt in self.attempts(TASK))
        return [item for item in certificates if item is not None]

    def session_history(self, machines: Iterable[str]) -> list[SessionValue]:
        """What earlier sessions on these machines say about their deviation."""
        self.refresh()
        return self._updater.history.of_machines(machines)

    def machines(self) -> list[dict[str, Any]]:
        """Machines whose peaks were measured into this store."""
        return self.store.machines()

    def peaks(self, machine: dict[str, Any], device: str) -> dict[str, float]:
        """The measured peaks of a device: FLOP/s by precision, and bytes/s of a copy.

        Empty if this machine was not measured."""
        for measured in self.machines():
            if measured["fingerprint"] == machine.get("fingerprint"):
                return peak_rates(measured, device)
        return {}


@contextlib.contextmanager
def _explain_full_disk() -> Iterator[None]:
    """The index lies on a disk of its own, not on the store's: its errors must name that disk."""
    try:
        yield
    except (OSError, duckdb().Error) as problem:
        if isinstance(problem, OSError) and problem.errno not in DISK_FULL:
            raise
        reason = str(problem).partition("\n")[0]
        folder = tempfile.gettempdir()
        advice = f"It lies in {folder}: make room there, or name another folder with TMPDIR."
        raise SteptimeError(f"The index cannot be written: {reason}. {advice}") from problem
