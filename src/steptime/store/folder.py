"""Journals in a folder: any number of writers, none of whom touches another's file."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from steptime.core.errors import SteptimeError
from steptime.core.record import Attempt, Record
from steptime.store import reader

FORMAT = 1


class FolderStore:
    """Reading never writes: the folder is made with the first result."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.problems: list[str] = []  # of the latest reading: files that could not be used, and why
        self._ended: dict[Path, Attempt] = {}  # read once: a journal with its end never changes
        self._check_format()

    def journal(self, identifier: str) -> Path:
        """Where this attempt's journal belongs: the day is part of the id. Makes the folder."""
        day = datetime.fromtimestamp((UUID(identifier).int >> 80) / 1000, UTC)
        path = self.path / "journal" / f"{day:%Y/%m/%d}" / f"{identifier}.jsonl"
        with self._clearly():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._mark()
        return path

    def attempts(self, task: str = "measure") -> list[Attempt]:
        """All of this task that ended, oldest first; what still runs is not here yet."""
        self.problems = []
        paths = sorted(self.path.glob("journal/*/*/*/*.jsonl"), key=lambda path: path.name)
        found = (self._ended.get(path) or reader.read(path, self.problems) for path in paths)
        attempts = {path: attempt for path, attempt in zip(paths, found, strict=True) if attempt is not None}
        self._ended = {path: attempt for path, attempt in attempts.items() if attempt.failure is None}
        return [attempt for attempt in attempts.values() if attempt.task == task]

    def records(self) -> list[Record]:
        """Oldest session first; one record for each of its cases."""
        groups: dict[tuple[str, str], list[Attempt]] = {}
        for attempt in self.attempts():
            groups.setdefault((attempt.session, attempt.case.key), []).append(attempt)
        return [Record(attempts=tuple(sorted(group, key=lambda a: a.process))) for group in groups.values()]

    def find(self, word: str) -> list[Record]:
        """Records whose session or any of whose attempts has an id that begins, or ends, with this word."""
        return [
            record
            for record in self.records()
            if any(_names(word, name) for name in (record.session, *(attempt.id for attempt in record.attempts)))
        ]

    @contextlib.contextmanager
    def hold(self, plan: str) -> Iterator[None]:
        """While inside, nobody else measures this plan."""
        path = self.path / "locks" / plan
        with self._clearly():
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(file, self.path)
            yield
        finally:
            os.close(file)

    def _check_format(self) -> None:
        mark = self.path / "STORE.json"
        if not mark.exists():
            return
        try:
            found = json.loads(mark.read_text())["format"]
        except (ValueError, KeyError, TypeError, OSError) as problem:
            raise SteptimeError(f"{mark} does not say its format ({problem!r}). Is this a steptime store?") from None
        if type(found) is not int:
            raise SteptimeError(f"{mark} names the format {found!r}, which is no number. Is this a steptime store?")
        if found > FORMAT:
            raise SteptimeError(
                f"The store {self.path} has format {found}, this version reads up to {FORMAT}. Use a newer steptime."
            )

    def _mark(self) -> None:
        mark = self.path / "STORE.json"
        if mark.exists():
            return
        draft = mark.with_name(f"STORE.json.{os.getpid()}")
        draft.write_text(json.dumps({"format": FORMAT}) + "\n")
        draft.replace(mark)  # a reader sees a whole file or none

    @contextlib.contextmanager
    def _clearly(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise SteptimeError(
                f"The store {self.path} can not be written: {problem.strerror}. Choose another folder with --store."
            ) from problem


def _lock(file: int, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SteptimeError(
            f"This plan is being measured into {path} by another process. Wait for it, or use another --store."
        ) from None
    except OSError:
        return  # a file system without locks: two runs of one plan would only repeat work


def _names(word: str, identifier: str) -> bool:
    """The end of an id is its random part: short and still different for neighbours in time."""
    return bool(word) and (identifier.startswith(word) or identifier.endswith(word))
