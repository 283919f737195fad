"""Other tools' results in the store's folder: the original file as it came, by its content, and the rows read from it.

A file's rows lie in one file named after its content, so importing it again changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from steptime.core.foreign import ForeignRun
from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.blobs import Blobs
from steptime.store.folder import FolderStore
from steptime.store.imported_rows import read_line, runs_of


class Imports:
    """The writer. Files appear whole or not at all; two writers of the same content write the same file. What was
    kept is safe on the disk when the block ends: to wait for each of a thousand files would take minutes."""

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
        """The original first: rows whose original is missing could not be proved. Tells whether anything changed."""
        found, name = list(runs), self._name(sha256)
        same = _text([replace(run, file=name) for run in found]) if name else b""
        if (
            name
            and same == rows(self.path, sha256).read_bytes()
            and _holds(blob(self.path, sha256), data)
        ):
            return False  # the same file under another name is no news
        with explain_write_errors(f"The store {self.path}", "Choose another folder with --store."):
            self._store.make()
            kept = self._write(blob(self.path, sha256), data)
            return self._write(rows(self.path, sha256), _text(found)) or kept

    def _name(self, sha256: str) -> str:
        """Under which the file was imported before."""
        kept = rows(self.path, sha256)
        first = kept.read_bytes().partition(b"\n")[0] if kept.exists() else b""
        return next((run.file for run in read_line(kept, 1, first, [])), "") if first else ""

    def _write(self, path: Path, data: bytes) -> bool:
        if _holds(path, data):
            return False
        with atomic_write(path, sync=False) as draft:
            draft.write_bytes(data)
        self._changed = True
        return True


def _holds(path: Path, data: bytes) -> bool:
    return path.exists() and path.stat().st_size == len(data) and path.read_bytes() == data


def blob(path: Path, sha256: str) -> Path:
    return Blobs(path).path(sha256)


def rows(path: Path, sha256: str) -> Path:
    return path / "imports" / f"{sha256}.jsonl"


def foreign_runs(path: Path | str, problems: list[str] | None = None) -> Iterator[ForeignRun]:
    """All imported rows. What cannot be read is told in `problems`, the rest is still there."""
    for file in sorted((Path(path) / "imports").glob("*.jsonl")):
        yield from runs_of(file, [] if problems is None else problems)


def _text(runs: list[ForeignRun]) -> bytes:
    lines = (
        json.dumps(run.to_dict(), ensure_ascii=False, separators=(",", ":")) + "\n" for run in runs
    )
    return "".join(lines).encode(errors="replace")
