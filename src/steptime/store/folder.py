"""A store in a folder: journals, and the parts made of them. No writer touches another's file."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt
from steptime.store import folder_changes, journals, parts, reader
from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.blobs import Blobs
from steptime.store.changes import Piece, Seen
from steptime.store.files import read_text
from steptime.store.imported_rows import read_rows
from steptime.store.journal import is_running
from steptime.store.listing import FolderListing
from steptime.store.machines import read_machines
from steptime.store.parts import Parts
from steptime.store.permissions import make_folder, open_private
from steptime.store.readable import ReadableStore
from steptime.store.versions import FORMAT, check_format

MARK = "STORE.json"


# What to do about a folder of an older format.
CONVERT = "Convert it: steptime store convert {} NEW"


class StoreGone(SteptimeError):
    """The folder existed earlier in this process and does not any more."""


class FolderStore(ReadableStore):
    """Reading never writes: the folder is made with the first result."""

    path: Path

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.problems = []
        self.parts = Parts(self.path / "parts")
        self._listing = FolderListing(self.path)
        # Read once, because a journal with its end never changes.
        self._ended: dict[Path, Attempt] = {}
        self._existed = self._check_format()

    def journal(self, identifier: str) -> Path:
        """The path of this attempt's journal; the day follows from the id. Makes the folder."""
        milliseconds = UUID(identifier).int >> 80
        day = datetime.fromtimestamp(milliseconds / 1000, UTC)
        path = self.path / "journal" / f"{day:%Y/%m/%d}" / f"{identifier}.jsonl"
        with self._explain_write_errors():
            make_folder(path.parent)
        self.make()
        return path

    def make(self) -> None:
        """Make the folder and mark it with its format, before anything is written into it."""
        mark = self.path / MARK
        with self._explain_write_errors():
            make_folder(self.path)
            if not mark.exists():
                with atomic_write(mark, sync=False) as draft:
                    draft.write_text(json.dumps({"format": FORMAT}) + "\n")

    def attempts(self, task: str = "measure") -> list[Attempt]:
        """Journals are read before parts, because a compactor moves them from there to here."""
        self.problems = []
        ended: dict[Path, Attempt] = {}
        by_id: dict[str, Attempt] = {}
        for path in journals.paths(self.path):
            attempt = self._ended.get(path) or reader.read(path, self.problems)
            if attempt is None:
                continue
            if attempt.failure is None:
                ended[path] = attempt
            if attempt.task == task:
                by_id[attempt.id] = attempt
        self._ended = ended
        for attempt in self.parts.attempts(task, self.problems):
            by_id[attempt.id] = attempt
        return [by_id[identifier] for identifier in sorted(by_id)]

    def news(self, seen: Seen) -> Iterator[Piece]:
        """A store that is gone as a whole has no news: it may come back."""
        self.check_exists()
        for piece in folder_changes.news(self._listing, seen):
            if piece.gone:
                self.check_exists()
            yield piece

    def check_exists(self) -> None:
        """Raise StoreGone if the store vanished. One that never existed is only empty."""
        exists = self._check_format()
        if self._existed and not exists:
            raise StoreGone(
                f"The store is gone: {(self.path / MARK).absolute()} existed and does not any "
                "more. Put the folder back to continue, or start again with --store."
            )
        self._existed = exists

    def attempts_at(self, places: Mapping[str, str]) -> list[Attempt]:
        attempts = []
        for location, ids in _ids_by_location(places).items():
            path = self.path / location
            if location.startswith("journal/"):
                attempt = reader.read(path)
                if attempt is not None:
                    attempts.append(attempt)
            elif location.startswith("parts/"):
                attempts += self._attempts_in_part(path, ids)
        return attempts

    def _attempts_in_part(self, path: Path, ids: set[str]) -> list[Attempt]:
        try:
            texts = parts.texts(path, only=ids)
        except parts.DamagedPart:
            return []
        stored = parts.stored_journals(path, texts, self.problems)
        return [journal.attempt for journal in stored if journal.attempt is not None]

    def foreign_at(self, places: Mapping[str, str]) -> list[ForeignRun]:
        runs = []
        for location, ids in _ids_by_location(places).items():
            rows = read_rows(self.path / location, [])
            runs += [run for run in rows if run.id in ids]
        return runs

    def machines(self) -> list[dict[str, Any]]:
        return read_machines(self.path, self.problems)

    def blob(self, sha256: str) -> bytes | None:
        blobs = Blobs(self.path)
        # The name comes from outside: it must not lead out of the folder.
        if sha256.isalnum() and blobs.is_intact(sha256):
            return blobs.get(sha256)
        return None

    @contextlib.contextmanager
    def hold(self, name: str, doing: str = "This plan is being measured into") -> Iterator[None]:
        """Inside the block no other process holds this name, for example the name of a plan."""
        path = self.path / "locks" / name
        with self._explain_write_errors():
            make_folder(path.parent)
            file = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(file, f"{doing} {self.path}")
            yield
        finally:
            os.close(file)

    def tidy(self, plan: str) -> None:
        """Remove what killed runs of a held plan left beside their journals.

        Evidence stays: the journal, and the output of a failed attempt."""
        for orders in self.path.glob("journal/*/*/*/*.case.json"):
            # Orders that cannot be read are left as they are.
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                _tidy_orders(orders, plan)

    def _check_format(self) -> bool:
        """Whether the folder is marked as a store. Raises if its format is another one."""
        store_format = read_format(self.path)
        if store_format is None:
            return False
        check_format(
            f"The store {self.path}", store_format, CONVERT.format(shlex.quote(str(self.path)))
        )
        return True

    def _explain_write_errors(self) -> contextlib.AbstractContextManager[None]:
        return explain_write_errors(f"The store {self.path}", "Choose another folder with --store.")


def read_format(store: Path) -> int | None:
    """The number in the folder's mark. None: nothing was written there yet."""
    mark = store / MARK
    try:
        store_format = json.loads(read_text(mark))["format"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise SteptimeError(f"{mark} cannot be read: {problem.strerror}.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        example = json.dumps({"format": FORMAT})
        raise SteptimeError(
            f"{mark} does not name its format, as {example} does. Is this a steptime store?"
        ) from None
    if type(store_format) is not int:
        raise SteptimeError(
            f"{mark} names the format {store_format!r}, which is not a number. "
            "Is this a steptime store?"
        )
    return store_format


def _ids_by_location(places: Mapping[str, str]) -> dict[str, set[str]]:
    """So that each file is read once."""
    groups: dict[str, set[str]] = {}
    for identifier, location in places.items():
        groups.setdefault(location, set()).add(identifier)
    return groups


def _tidy_orders(orders: Path, plan: str) -> None:
    stem = orders.name.removesuffix(".case.json")
    path = orders.with_name(f"{stem}.jsonl")
    log = orders.with_name(f"{stem}.log")
    if json.loads(read_text(orders))["plan"] != plan:
        return
    if path.exists() and is_running(path):
        return
    attempt = reader.read(path)
    if not log.stat().st_size or (attempt and not attempt.failure):
        log.unlink()
    orders.unlink()


def _lock(file: int, doing: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SteptimeError(
            f"{doing} by another process. Wait for it, or use another --store."
        ) from None
    except OSError:
        # A file system without locks: two runs of one plan would only repeat work.
        return
