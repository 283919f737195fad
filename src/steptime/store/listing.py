"""Which files a store's folder has, cheaply asked again and again: a folder that did not change is not listed again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FINAL = "final"  # the mark of a file that never changes: a journal with its end, a part
SETTLED_NS = 2_000_000_000  # a folder may change twice within one tick of its file system's clock


@dataclass(frozen=True)
class _Listing:
    changed_ns: int
    listed_ns: int
    marks: dict[str, str]  # by the name of what is in it

    @property
    def settled(self) -> bool:
        return self.changed_ns < self.listed_ns - SETTLED_NS


class FolderListing:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._listings: dict[str, _Listing] = {}

    def marks(self, known: Mapping[str, str]) -> dict[str, str]:
        """Of every file that holds results, by its name within the store. Journals before parts, because a compactor
        moves attempts from there to here."""
        found = {}
        for day in self._days("journal", 3):
            for place in (f"{day}/{name}" for name in self._listed(day, ".jsonl", marked=False)):
                found[place] = (
                    FINAL if known.get(place) == FINAL else _mark(self.path / place)
                )  # it may have grown
        for folder, suffix in (("imports", ".jsonl"), ("parts", ".parquet")):
            found |= {
                f"{folder}/{name}": mark for name, mark in self._listed(folder, suffix).items()
            }
        return {
            place: FINAL if known.get(place) == FINAL else mark
            for place, mark in found.items()
            if mark
        }

    def _days(self, folder: str, levels: int) -> Iterator[str]:
        for name in self._listed(folder, "", marked=False):
            if name.isdecimal():
                below = f"{folder}/{name}"
                yield from self._days(below, levels - 1) if levels > 1 else (below,)

    def _listed(self, folder: str, suffix: str, *, marked: bool = True) -> dict[str, str]:
        path, now = self.path / folder, time.time_ns()
        known = self._listings.get(folder)
        try:
            changed = path.stat().st_mtime_ns
            if known is None or known.changed_ns != changed or not known.settled:
                names = sorted(
                    name
                    for name in os.listdir(path)
                    if name.endswith(suffix) and not name.startswith(".")
                )
                known = _Listing(
                    changed, now, {name: _mark(path / name) if marked else "" for name in names}
                )
                self._listings[folder] = known
        except OSError:
            return {}  # not there yet, or no more
        return known.marks


def _mark(path: Path) -> str:
    """Empty: gone meanwhile."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_size}.{found.st_mtime_ns}"
