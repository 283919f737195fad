"""Keeps an index from one process to the next. It is a cache: it can be deleted at any time, and is made again.

What is published is a whole file that nobody opens: every process works on a copy of its own, so any number may."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

from steptime.index.index import Index
from steptime.index.table import duckdb
from steptime.store.atomic import atomic_write
from steptime.store.blobs import sha256_of

WORTH_SECONDS = 1.0  # of work: what was made faster is made again
UNUSED_SECONDS = 30 * 86_400.0
MAKERS = (
    "analysis/**/*.py",
    "core/foreign.py",
    *(f"index/{name}.py" for name in ("catalogue", "update", "provenance", "rows", "sql", "table")),
)
"""When one of these changes, so may the rows."""


class Cache:
    def __init__(self, store: str, folder: Path | None = None) -> None:
        """`store`: what tells it from other stores."""
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.folder, self._key = folder or home / "steptime", _key(store)
        self._copy = Path(tempfile.mkdtemp(prefix="steptime-index-")) / "index.duckdb"
        weakref.finalize(self, shutil.rmtree, self._copy.parent, ignore_errors=True)
        self._unpublished = 0.0
        self._cost = 0.0

    def open(self) -> Index:
        """As it was published, or empty."""
        for path in self.published():
            with contextlib.suppress(OSError, duckdb().Error):
                shutil.copyfile(path, self._copy)
                os.utime(path)
                if path.name == self._name(self._copy):
                    return Index(str(self._copy))
        self._copy.unlink(missing_ok=True)
        return Index(str(self._copy))

    def publish(self, index: Index, *, worked_seconds: float = 0.0, force: bool = False) -> None:
        """Where enough work is in it; a large one is copied more rarely. A disk that refuses costs only time."""
        self._unpublished += worked_seconds
        worth = WORTH_SECONDS if force else max(WORTH_SECONDS, 5 * self._cost)
        if self._unpublished < worth:
            return
        began = time.monotonic()
        with contextlib.suppress(OSError, duckdb().Error):
            index.database.execute("CHECKPOINT")
            if not _is_empty(Path(f"{self._copy}.wal")):
                return  # somebody reads what was before: next time
            old, new = self.published(), self.folder / self._name(self._copy)
            self._put(new)
            for path in {*old, *_unused(self.folder)} - {new}:
                path.unlink(missing_ok=True)
        self._unpublished, self._cost = 0.0, time.monotonic() - began

    def published(self) -> list[Path]:
        return sorted(self.folder.glob(f"{self._key}.*.duckdb"))

    def _name(self, file: Path) -> str:
        """After its content, so that damage shows."""
        return f"{self._key}.{sha256_of(file)[:32]}.duckdb"

    def _put(self, path: Path) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_write(path, sync=False) as draft:
            shutil.copyfile(self._copy, draft)


def _is_empty(path: Path) -> bool:
    return not path.exists() or path.stat().st_size == 0


def _unused(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.glob("*.duckdb*")
        if time.time() - path.stat().st_mtime > UNUSED_SECONDS
    ]


def _key(store: str) -> str:
    found = hashlib.sha256(f"{duckdb().__version__}\n{store}\n".encode())
    package = Path(__file__).parents[1]
    for file in sorted(file for pattern in MAKERS for file in package.glob(pattern)):
        found.update(file.read_bytes())
    return found.hexdigest()[:32]
