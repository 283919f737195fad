"""Which files a store's folder has. Cheap to ask again: unchanged folders are not listed again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# The mark of a file that never changes: a journal with its end, or a part.
FINAL = "final"
# A folder may change twice within one tick of its file system's clock.
SETTLED_NS = 2_000_000_000


@dataclass(frozen=True)
class _Snapshot:
    """The content of one folder at one moment."""

    changed_ns: int
    listed_ns: int
    # By the name of each file in it.
    marks: dict[str, str]

    @property
    def settled(self) -> bool:
        return self.changed_ns < self.listed_ns - SETTLED_NS


class FolderListing:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._snapshots: dict[str, _Snapshot] = {}

    def marks(self, seen_marks: Mapping[str, str]) -> dict[str, str]:
        """The mark of every file that holds results, by its path within the store.

        Journals come before parts, because a compactor moves attempts from there to here."""
        marks = {}
        for day in self._days("journal", 3):
            for name in self._list(day, ".jsonl", marked=False):
                location = f"{day}/{name}"
                # A journal without its end may have grown, so it is always looked at.
                if seen_marks.get(location) != FINAL:
                    marks[location] = _mark(self.path / location)
                else:
                    marks[location] = FINAL
        # Imports and parts appear complete, so the listing of their folder has their marks.
        for folder, suffix in (("imports", ".jsonl"), ("parts", ".parquet")):
            for name, mark in self._list(folder, suffix).items():
                location = f"{folder}/{name}"
                marks[location] = FINAL if seen_marks.get(location) == FINAL else mark
        return {location: mark for location, mark in marks.items() if mark}

    def _days(self, folder: str, levels: int) -> Iterator[str]:
        for name in self._list(folder, "", marked=False):
            if not name.isdecimal():
                continue
            below = f"{folder}/{name}"
            if levels > 1:
                yield from self._days(below, levels - 1)
            else:
                yield below

    def _list(self, folder: str, suffix: str, *, marked: bool = True) -> dict[str, str]:
        """The marks of a folder's files by name; empty ones if they are not `marked`."""
        path = self.path / folder
        now = time.time_ns()
        snapshot = self._snapshots.get(folder)
        try:
            changed = path.stat().st_mtime_ns
            if snapshot is None or snapshot.changed_ns != changed or not snapshot.settled:
                names = [name for name in os.listdir(path) if _is_result(name, suffix)]
                marks = {name: _mark(path / name) if marked else "" for name in sorted(names)}
                snapshot = _Snapshot(changed, now, marks)
                self._snapshots[folder] = snapshot
        except OSError:
            # The folder is not there yet, or no more.
            return {}
        return snapshot.marks


def _is_result(name: str, suffix: str) -> bool:
    """A dot begins the name of a draft."""
    return name.endswith(suffix) and not name.startswith(".")


def _mark(path: Path) -> str:
    """Size and time of a file; empty if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_size}.{status.st_mtime_ns}"
