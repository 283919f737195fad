"""What is new in a folder: the content of each new or changed file.

Attempts that only moved into a part are not read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from steptime.store import parts, reader
from steptime.store.changes import Piece, Seen
from steptime.store.files import read_bytes
from steptime.store.journal import is_running
from steptime.store.listing import FINAL, FolderListing


def news(listing: FolderListing, seen: Seen) -> Iterator[Piece]:
    """New files first, because an attempt whose journal is gone lies in a part that is new."""
    marks = listing.marks(seen.marks)
    changed = {}
    for location, mark in marks.items():
        if seen.marks.get(location) != mark:
            changed[location] = mark
    journals = [location for location in changed if location.startswith("journal/")]
    known_ids = seen.known_ids(PurePosixPath(location).stem for location in journals)
    for location, mark in changed.items():
        path = listing.path / location
        if location.startswith("parts/"):
            yield _read_part(path, location, mark, seen)
        elif location.startswith("imports/"):
            yield _read_import(path, location, mark)
        elif path.stem in known_ids:
            yield Piece(location=location, mark=FINAL)
        else:
            yield from _read_journal(path, location, mark)
    gone = seen.marks.keys() - marks.keys()
    if gone:
        yield Piece(gone=frozenset(gone))


def _read_journal(path: Path, location: str, mark: str) -> Iterator[Piece]:
    """A journal without an end may still get one; a running one may end unnoticed."""
    problems: list[str] = []
    attempt = reader.read(path, problems)
    if attempt is not None:
        if attempt.ended and not problems:
            mark = FINAL
        yield Piece(location=location, mark=mark, attempts=(attempt,), problems=tuple(problems))
    elif problems or not _is_running_or_gone(path):
        yield Piece(location=location, mark=mark, problems=tuple(problems))


def _is_running_or_gone(path: Path) -> bool:
    """If the journal is gone, a part has it."""
    try:
        return is_running(path)
    except OSError:
        return True


def _read_part(path: Path, location: str, mark: str, seen: Seen) -> Piece:
    problems: list[str] = []
    try:
        ids = parts.ids(path)
        known_ids = seen.known_ids(ids)
        texts = {}
        if known_ids < ids:
            texts = parts.texts(path, only=ids - known_ids)
    except parts.DamagedPart as problem:
        return Piece(location=location, mark=mark, problems=(str(problem),))
    journals = parts.stored_journals(path, texts, problems)
    attempts = tuple(journal.attempt for journal in journals if journal.attempt)
    return Piece(
        location=location,
        mark=FINAL,
        attempts=attempts,
        present=frozenset(known_ids),
        problems=tuple(problems),
    )


def _read_import(path: Path, location: str, mark: str) -> Piece:
    try:
        content = read_bytes(path)
    except OSError as problem:
        sentence = f"{path}: not readable ({problem.strerror}); it is left as it is."
        return Piece(location=location, mark=mark, has_all_rows=True, problems=(sentence,))
    lines = tuple(line for line in content.split(b"\n") if line)
    return Piece(location=location, mark=mark, foreign=lines, has_all_rows=True)
