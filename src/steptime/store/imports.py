"""Results of other tools: the original file by its content, and the rows that were read from it.

The rows of an original lie in one file named after its content, so a second import changes
nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from steptime.core.foreign import ForeignRun
from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.blobs import Blobs
from steptime.store.files import read_bytes
from steptime.store.folder import FolderStore
from steptime.store.imported_rows import read_line, read_rows

# Below a store's folder.
PATTERN = "imports/*.jsonl"


class Imports:
    """The writer, used as a context manager.

    Files are synchronised once, at the end of the block: waiting for each of a thousand files
    would take minutes."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._store = FolderStore(path)
        self._changed = False

    def __enter__(self) -> Imports:
        return self

    def __exit__(self, *_: object) -> None:
        if self._changed:
            os.sync()

    def keep(self, sha256: str, data: bytes, runs: Iterable[ForeignRun]) -> bool:
        """Store an original and its rows. Returns whether anything changed."""
        runs = list(runs)
        if self._holds(sha256, data, runs):
            return False
        with explain_write_errors(f"The store {self.path}", "Choose another folder with --store."):
            self._store.make()
            # The original first: rows without it could not be proved.
            blob_changed = self._write(blob_path(self.path, sha256), data)
            rows_changed = self._write(rows_path(self.path, sha256), rows_text(runs))
        return blob_changed or rows_changed

    def _holds(self, sha256: str, data: bytes, runs: list[ForeignRun]) -> bool:
        """The same file under another name counts as the same."""
        name = self._imported_name(sha256)
        if not name:
            return False
        renamed = [replace(run, file=name) for run in runs]
        stored = read_bytes(rows_path(self.path, sha256))
        return stored == rows_text(renamed) and _has_content(blob_path(self.path, sha256), data)

    def _imported_name(self, sha256: str) -> str:
        """The name under which the original was imported before; empty if it was not."""
        path = rows_path(self.path, sha256)
        if not path.exists():
            return ""
        first_line = read_bytes(path).partition(b"\n")[0]
        if first_line:
            for run in read_line(path, 1, first_line, []):
                return run.file
        return ""

    def _write(self, path: Path, data: bytes) -> bool:
        if _has_content(path, data):
            return False
        with atomic_write(path, sync=False) as draft:
            draft.write_bytes(data)
        self._changed = True
        return True


def _has_content(path: Path, data: bytes) -> bool:
    return path.exists() and path.stat().st_size == len(data) and read_bytes(path) == data


def blob_path(store: Path, sha256: str) -> Path:
    return Blobs(store).path(sha256)


def rows_path(store: Path, sha256: str) -> Path:
    return store / "imports" / f"{sha256}.jsonl"


def foreign_runs(store: Path | str, problems: list[str] | None = None) -> Iterator[ForeignRun]:
    """All imported rows. What cannot be read is skipped and explained in `problems`."""
    if problems is None:
        problems = []
    for file in sorted(Path(store).glob(PATTERN)):
        yield from read_rows(file, problems)


def rows_text(runs: Iterable[ForeignRun]) -> bytes:
    """The content of the file that holds these rows: one JSON object per line."""
    lines = []
    for run in runs:
        text = json.dumps(run.to_dict(), ensure_ascii=False, separators=(",", ":"))
        lines.append(f"{text}\n")
    return "".join(lines).encode(errors="replace")
