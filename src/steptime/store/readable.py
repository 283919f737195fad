"""What every store can be asked, whether a folder or a database holds its attempts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt, Record
from steptime.store.changes import Piece, Seen


class ReadableStore(ABC):
    # Shown to people; for a database it is no path.
    path: Path | str
    # What the latest reading could not use, and why.
    problems: list[str]

    @abstractmethod
    def attempts(self, task: str = "measure") -> list[Attempt]:
        """All ended attempts of this task, oldest first. Running ones are left out."""

    @abstractmethod
    def news(self, seen: Seen) -> Iterator[Piece]:
        """What a follower of this store has not seen yet. Cheap if nothing changed."""

    @abstractmethod
    def attempts_at(self, places: Mapping[str, str]) -> list[Attempt]:
        """The attempts with these ids, each from the place that `news` named.

        One that is gone in the meantime is left out."""

    @abstractmethod
    def foreign_at(self, places: Mapping[str, str]) -> list[ForeignRun]:
        """The imported rows with these ids, each from the place that `news` named."""

    @abstractmethod
    def machines(self) -> list[dict[str, Any]]:
        """The machines whose peaks were measured, each with its fingerprint."""

    @abstractmethod
    def blob(self, sha256: str) -> bytes | None:
        """A file by the hash of its content. None: it is missing or damaged."""

    def records(self) -> list[Record]:
        """One record for each case of each session, oldest session first."""
        groups: dict[tuple[str, str], list[Attempt]] = {}
        for attempt in self.attempts():
            groups.setdefault((attempt.session, attempt.case.key), []).append(attempt)
        records = []
        for group in groups.values():
            group.sort(key=lambda attempt: attempt.process)
            records.append(Record(attempts=tuple(group)))
        return records

    def find(self, name: str) -> list[Record]:
        """Records whose session, or one of whose attempts, has an id with this start or end."""
        return [record for record in self.records() if _is_named(record, name)]


def _is_named(record: Record, name: str) -> bool:
    """An id ends in random digits, so its end is short and still tells neighbours apart."""
    if not name:
        return False
    ids = [record.session, *(attempt.id for attempt in record.attempts)]
    return any(identifier.startswith(name) or identifier.endswith(name) for identifier in ids)
