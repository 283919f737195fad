"""Journals in a folder, and the parts made of them: any number of writers, none of whom touches another's file."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt
from steptime.store import folder_changes, journals, parts, reader
from steptime.store.atomic import explain_write_errors
from steptime.store.blobs import Blobs
from steptime.store.changes import Piece, Seen
from steptime.store.imported_rows import runs_of
from steptime.store.journal import is_running
from steptime.store.listing import FolderListing
from steptime.store.parts import Parts
from steptime.store.readable import ReadableStore

FORMAT, MARK = 1, "STORE.json"


class StoreGone(SteptimeError):
    """A folder that was there while this process looked at it."""


class FolderStore(ReadableStore):
    """Reading never writes: the folder is made with the first result."""

    path: Path

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.problems = []
        self.parts = Parts(self.path / "parts")
        self._listing = FolderListing(self.path)
        self._ended: dict[Path, Attempt] = {}  # read once: a journal with its end never changes
        self._was_there = self._check_format()

    def journal(self, identifier: str) -> Path:
        """Where this attempt's journal belongs: the day is part of the id. Makes the folder."""
        day = datetime.fromtimestamp((UUID(identifier).int >> 80) / 1000, UTC)
        path = self.path / "journal" / f"{day:%Y/%m/%d}" / f"{identifier}.jsonl"
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
        self.make()
        return path

    def make(self) -> None:
        """The folder, marked with its format: before the first thing is written into it."""
        with self._writing():
            self.path.mkdir(parents=True, exist_ok=True)
            self._mark()

    def attempts(self, task: str = "measure") -> list[Attempt]:
        """Journals are read before parts, because a compactor moves them from there to here. One is kept per id."""
        self.problems = []
        found = {
            path: self._ended.get(path) or reader.read(path, self.problems)
            for path in journals.paths(self.path)
        }
        read = {path: attempt for path, attempt in found.items() if attempt is not None}
        self._ended = {path: attempt for path, attempt in read.items() if attempt.failure is None}
        kept = {attempt.id: attempt for attempt in read.values() if attempt.task == task}
        kept |= {attempt.id: attempt for attempt in self.parts.attempts(task, self.problems)}
        return [kept[identifier] for identifier in sorted(kept)]

    def news(self, seen: Seen) -> Iterator[Piece]:
        """Of a store that is gone as a whole there are none: it may come back."""
        self.check_there()
        for piece in folder_changes.news(self._listing, seen):
            if piece.gone:
                self.check_there()
            yield piece

    def check_there(self) -> None:
        """One that never was there is only empty."""
        is_there = self._check_format()
        if self._was_there and not is_there:
            raise StoreGone(
                f"The store is gone: {(self.path / MARK).absolute()} was there, and is not any more. "
                "Put the folder back, and this goes on; or start again with --store and where the folder is now."
            )
        self._was_there = is_there

    def attempts_at(self, places: Mapping[str, str]) -> list[Attempt]:
        found = [
            reader.read(self.path / place)
            for place in places.values()
            if place.startswith("journal/")
        ]
        for place, ids in _gathered(places).items():
            if place.startswith("parts/"):
                with contextlib.suppress(parts.DamagedPart):
                    texts = parts.texts(self.path / place, only=ids)
                    found += [
                        row.attempt
                        for row in parts.stored_journals(self.path / place, texts, self.problems)
                    ]
        return [attempt for attempt in found if attempt is not None]

    def foreign_at(self, places: Mapping[str, str]) -> list[ForeignRun]:
        groups = _gathered(places).items()
        return [
            run for place, ids in groups for run in runs_of(self.path / place, []) if run.id in ids
        ]

    def machines(self) -> list[dict[str, Any]]:
        found = []
        for path in sorted(self.path.glob("machines/*.json")):
            try:
                found.append({"fingerprint": path.stem, **json.loads(path.read_text())})
            except (OSError, ValueError, TypeError):
                self.problems.append(f"{path}: not readable; it is left as it is.")
        return found

    def blob(self, sha256: str) -> bytes | None:
        blobs = Blobs(self.path)
        return blobs.get(sha256) if sha256.isalnum() and blobs.is_whole(sha256) else None

    @contextlib.contextmanager
    def hold(self, name: str, doing: str = "This plan is being measured into") -> Iterator[None]:
        """While inside, nobody else measures the plan of this name."""
        path = self.path / "locks" / name
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(file, f"{doing} {self.path}")
            yield
        finally:
            os.close(file)

    def tidy(self, plan: str) -> None:
        """Removes what killed runs of a plan left beside their journals, while it is held. Evidence stays: a journal,
        and what a failed attempt printed."""
        for orders in self.path.glob("journal/*/*/*/*.case.json"):
            stem = orders.name.removesuffix(".case.json")
            path, log = orders.with_name(f"{stem}.jsonl"), orders.with_name(f"{stem}.log")
            with contextlib.suppress(
                OSError, ValueError, KeyError, TypeError
            ):  # then it is left as it is
                if json.loads(orders.read_text())["plan"] != plan or (
                    path.exists() and is_running(path)
                ):
                    continue
                attempt = reader.read(path)
                if not log.stat().st_size or (attempt and not attempt.failure):
                    log.unlink()
                orders.unlink()

    def _check_format(self) -> bool:
        """False: nothing was written here yet."""
        mark = self.path / MARK
        try:
            found = json.loads(mark.read_text())["format"]
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as problem:
            raise SteptimeError(f"{mark} cannot be read: {problem.strerror}.") from None
        except (ValueError, KeyError, TypeError):
            wanted = json.dumps({"format": FORMAT})
            raise SteptimeError(
                f"{mark} does not say its format, as {wanted} does. Is this a steptime store?"
            ) from None
        if type(found) is not int:
            raise SteptimeError(
                f"{mark} names the format {found!r}, which is no number. Is this a steptime store?"
            )
        if found > FORMAT:
            raise SteptimeError(
                f"The store {self.path} has format {found}, this version reads up to {FORMAT}. Use a newer steptime."
            )
        return True

    def _mark(self) -> None:
        mark = self.path / MARK
        if mark.exists():
            return
        draft = mark.with_name(f"{MARK}.{os.getpid()}")
        draft.write_text(json.dumps({"format": FORMAT}) + "\n")
        draft.replace(mark)  # a reader sees a whole file or none

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return explain_write_errors(f"The store {self.path}", "Choose another folder with --store.")


def _gathered(places: Mapping[str, str]) -> dict[str, set[str]]:
    """The ids by place, so that each is read once."""
    found: dict[str, set[str]] = {}
    for identifier, place in places.items():
        found.setdefault(place, set()).add(identifier)
    return found


def _lock(file: int, doing: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SteptimeError(
            f"{doing} by another process. Wait for it, or use another --store."
        ) from None
    except OSError:
        return  # a file system without locks: two runs of one plan would only repeat work
