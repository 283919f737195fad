"""What every store can be asked, whatever keeps its attempts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt, Record
from steptime.store.changes import Piece, Seen


class ReadableStore(ABC):
    path: Path | str  # for people: where it is
    problems: list[str]  # of the latest reading: what could not be used, and why

    @abstractmethod
    def attempts(self, task: str = "measure") -> list[Attempt]:
        """All of this task that ended, oldest first; what still runs is not here yet."""

    @abstractmethod
    def news(self, seen: Seen) -> Iterator[Piece]:
        """What somebody who follows this store has not seen yet. Cheap where there is nothing."""

    @abstractmethod
    def attempts_at(self, places: Mapping[str, str]) -> list[Attempt]:
        """These, by id, each from the place where `news` found it. One that is gone meanwhile is left out."""

    @abstractmethod
    def foreign_at(self, places: Mapping[str, str]) -> list[ForeignRun]:
        """These imported rows, by id, each from the place where `news` found it."""

    @abstractmethod
    def machines(self) -> list[dict[str, Any]]:
        """Those whose peaks were measured, each with its fingerprint."""

    @abstractmethod
    def blob(self, sha256: str) -> bytes | None:
        """A file by its content's name; None: it is not here, or not whole."""

    def records(self) -> list[Record]:
        """Oldest session first; one record for each of its cases."""
        groups: dict[tuple[str, str], list[Attempt]] = {}
        for attempt in self.attempts():
            groups.setdefault((attempt.session, attempt.case.key), []).append(attempt)
        return [
            Record(attempts=tuple(sorted(group, key=lambda a: a.process)))
            for group in groups.values()
        ]

    def find(self, word: str) -> list[Record]:
        """Records whose session or any of whose attempts has an id that begins, or ends, with this word."""
        return [
            record
            for record in self.records()
            if any(
                _names(word, name)
                for name in (record.session, *(attempt.id for attempt in record.attempts))
            )
        ]


def _names(word: str, identifier: str) -> bool:
    """The end of an id is its random part: short and still different for neighbours in time."""
    return bool(word) and (identifier.startswith(word) or identifier.endswith(word))
