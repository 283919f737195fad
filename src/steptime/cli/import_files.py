"""Imports files of other tools into a store and keeps account of what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from steptime import formats
from steptime.cli.render.watch import Progress
from steptime.core.errors import SteptimeError
from steptime.formats import MOST_BYTES, Original
from steptime.store.imports import Imports

if TYPE_CHECKING:
    from steptime.formats import Reading

# The name under which a file is stored, and its path.
NamedFile = tuple[str, Path]


@dataclass
class ImportSummary:
    """What became of the files so far."""

    readings: list[tuple[Original, Reading]] = field(default_factory=list)
    changed: int = 0
    # A file, and the one that it is a copy of.
    duplicates: dict[str, str] = field(default_factory=dict)
    unrecognised: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def by_format(self) -> dict[str, list[Reading]]:
        groups: dict[str, list[Reading]] = {}
        for _, reading in self.readings:
            groups.setdefault(reading.source, []).append(reading)
        return dict(sorted(groups.items()))


def find_files(path: Path) -> Iterator[NamedFile]:
    """Names begin at the folder that was named: a store keeps no paths of this machine."""
    if path.is_dir():
        folder = path.resolve().name
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield f"{folder}/{file.relative_to(path).as_posix()}", file
    elif path.is_file():
        yield path.name, path
    else:
        raise SteptimeError(f"There is no file or folder {path}.")


def import_files(files: list[NamedFile], store: Path) -> ImportSummary:
    summary = ImportSummary()
    names: dict[str, str] = {}
    with Progress() as progress, Imports(store) as imports:
        for number, (name, path) in enumerate(files, 1):
            progress.show(f"{number} of {len(files)}: {name}")
            original = _read_original(name, path, summary)
            if original is None:
                continue
            # The same file twice, for example in an archive and unpacked.
            if original.sha256 in names:
                summary.duplicates[name] = names[original.sha256]
            elif formats.recognise(original):
                names[original.sha256] = name
                _import_file(original, imports, summary)
            else:
                summary.unrecognised.append(name)
    return summary


def _import_file(original: Original, imports: Imports, summary: ImportSummary) -> None:
    reading = formats.read(original)
    summary.readings.append((original, reading))
    # False if the store has the same content already.
    summary.changed += imports.keep(original.sha256, original.data, reading.runs)
    if reading.broken:
        summary.unreadable[original.name] = reading.broken


def _read_original(name: str, path: Path, summary: ImportSummary) -> Original | None:
    """None if the file cannot be read; the summary then has the reason."""

    def read_neighbour(relative: str) -> bytes | None:
        neighbour = path.parent / relative
        try:
            if neighbour.is_file() and neighbour.stat().st_size <= MOST_BYTES:
                return neighbour.read_bytes()
        except (OSError, ValueError):
            pass
        # Only a hint: a reader works without the neighbour.
        return None

    try:
        if path.stat().st_size > MOST_BYTES:
            summary.unreadable[name] = f"larger than {MOST_BYTES >> 20} MiB"
            return None
        location = path.resolve().as_posix()
        return Original(name, path.read_bytes(), location, beside=read_neighbour)
    except OSError as problem:
        summary.unreadable[name] = str(problem.strerror)
        return None
