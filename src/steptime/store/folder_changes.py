"""A folder's news: what each new or changed file holds. Attempts that only moved into a part are not read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from steptime.store import parts, reader
from steptime.store.changes import Piece, Seen
from steptime.store.journal import is_running
from steptime.store.listing import FINAL, FolderListing


def news(listing: FolderListing, seen: Seen) -> Iterator[Piece]:
    """New things first: an attempt whose journal is gone lies in a part that is new."""
    now = listing.marks(seen.marks)
    new = {place: mark for place, mark in now.items() if seen.marks.get(place) != mark}
    known = seen.known(PurePosixPath(place).stem for place in new if place.startswith("journal/"))
    for place, mark in new.items():
        path = listing.path / place
        if place.startswith("journal/"):
            yield from (
                [Piece(place=place, mark=FINAL)]
                if path.stem in known
                else _journal(path, place, mark)
            )
        elif place.startswith("parts/"):
            yield _part(path, place, mark, seen)
        else:
            yield _import(path, place, mark)
    if gone := seen.marks.keys() - now.keys():
        yield Piece(gone=frozenset(gone))


def _journal(path: Path, place: str, mark: str) -> Iterator[Piece]:
    """One without an end may still get one; a running one may end without a sign."""
    problems: list[str] = []
    attempt = reader.read(path, problems)
    if attempt is not None:
        mark = FINAL if attempt.ended and not problems else mark
        yield Piece(place=place, mark=mark, attempts=(attempt,), problems=tuple(problems))
    elif problems or not _lives(path):
        yield Piece(place=place, mark=mark, problems=tuple(problems))


def _lives(path: Path) -> bool:
    """Or is gone: then a part has it."""
    try:
        return is_running(path)
    except OSError:
        return True


def _part(path: Path, place: str, mark: str, seen: Seen) -> Piece:
    problems: list[str] = []
    try:
        ids = parts.ids(path)
        known = seen.known(ids)
        texts = parts.texts(path, only=ids - known) if known < ids else {}
        attempts = tuple(
            row.attempt for row in parts.stored_journals(path, texts, problems) if row.attempt
        )
    except parts.DamagedPart as problem:
        return Piece(place=place, mark=mark, problems=(str(problem),))
    present = frozenset(known)
    return Piece(
        place=place, mark=FINAL, attempts=attempts, present=present, problems=tuple(problems)
    )


def _import(path: Path, place: str, mark: str) -> Piece:
    try:
        lines = tuple(line for line in path.read_bytes().split(b"\n") if line)
    except OSError as problem:
        told = f"{path}: not readable ({problem.strerror}); it is left as it is."
        return Piece(place=place, mark=mark, whole=True, problems=(told,))
    return Piece(place=place, mark=mark, foreign=lines, whole=True)
