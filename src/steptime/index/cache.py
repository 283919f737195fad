"""Keeps an index from one process to the next. It can be deleted at any time and is made again.

A published index is a complete file that no process opens: each works on a copy of its own, so any
number of processes may run at once."""

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

# An index that took less work is made again rather than copied.
WORTH_SECONDS = 1.0
UNUSED_SECONDS = 30 * 86_400.0
# The rows may change if one of these files changes, so the key of a cache depends on them all.
MAKERS = (
    "analysis/**/*.py",
    "core/foreign.py",
    "index/catalogue.py",
    "index/cells.py",
    "index/imported.py",
    "index/provenance.py",
    "index/rows.py",
    "index/session_history.py",
    "index/sql.py",
    "index/table.py",
    "index/update.py",
)


class Cache:
    def __init__(self, store: str, folder: Path | None = None) -> None:
        """`store`: what tells it from other stores."""
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.folder = folder or home / "steptime"
        self._key = _make_key(store)
        self._copy = Path(tempfile.mkdtemp(prefix="steptime-index-")) / "index.duckdb"
        weakref.finalize(self, shutil.rmtree, self._copy.parent, ignore_errors=True)
        self._unpublished_seconds = 0.0
        self._publishing_seconds = 0.0

    def open(self) -> Index:
        """The index as it was published, or an empty one."""
        for path in self.published_files():
            with contextlib.suppress(OSError, duckdb().Error):
                shutil.copyfile(path, self._copy)
                # Marks it as used, so that no process removes it.
                os.utime(path)
                # The name holds a hash: a damaged or half-copied file is not opened.
                if path.name == self._name_of(self._copy):
                    return Index(str(self._copy))
        self._copy.unlink(missing_ok=True)
        return Index(str(self._copy))

    def publish(self, index: Index, *, worked_seconds: float = 0.0, force: bool = False) -> None:
        """Copies the index for other processes if enough work went into it.

        A large index is copied more rarely. A disk that refuses costs only time."""
        self._unpublished_seconds += worked_seconds
        worth = WORTH_SECONDS
        if not force:
            worth = max(WORTH_SECONDS, 5 * self._publishing_seconds)
        if self._unpublished_seconds < worth:
            return
        began = time.monotonic()
        with contextlib.suppress(OSError, duckdb().Error):
            index.database.execute("CHECKPOINT")
            # A reader of an older state keeps the log from being merged: try next time.
            if not _is_empty(Path(f"{self._copy}.wal")):
                return
            outdated = {*self.published_files(), *_unused_files(self.folder)}
            new = self.folder / self._name_of(self._copy)
            self._copy_to(new)
            for path in outdated - {new}:
                path.unlink(missing_ok=True)
        self._unpublished_seconds = 0.0
        self._publishing_seconds = time.monotonic() - began

    def published_files(self) -> list[Path]:
        return sorted(self.folder.glob(f"{self._key}.*.duckdb"))

    def _name_of(self, file: Path) -> str:
        """Contains a hash of the content, so that damage shows."""
        return f"{self._key}.{sha256_of(file)[:32]}.duckdb"

    def _copy_to(self, path: Path) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_write(path, sync=False) as draft:
            shutil.copyfile(self._copy, draft)


def _is_empty(path: Path) -> bool:
    return not path.exists() or path.stat().st_size == 0


def _unused_files(folder: Path) -> list[Path]:
    oldest = time.time() - UNUSED_SECONDS
    return [path for path in folder.glob("*.duckdb*") if path.stat().st_mtime < oldest]


def _make_key(store: str) -> str:
    # A path may have bytes that are not UTF-8.
    name = f"{duckdb().__version__}\n{store}\n"
    digest = hashlib.sha256(name.encode(errors="surrogateescape"))
    for file in maker_files():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def maker_files() -> list[Path]:
    package = Path(__file__).parents[1]
    return sorted(file for pattern in MAKERS for file in package.glob(pattern))
