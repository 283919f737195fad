"""Takes news of a store into the index: makes rows of what is new, anew of what changed, and drops those of what is
gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from steptime.core.record import Attempt, Record
from steptime.index.index import Index
from steptime.index.provenance import Key, Ledger
from steptime.index.rows import Row, make_row
from steptime.store.changes import Piece
from steptime.store.imported_rows import read_line
from steptime.store.readable import ReadableStore

MOST_PIECES, MOST_ATTEMPTS, MOST_ROWS = (
    5_000,
    2_000,
    50_000,
)  # taken in at once: they are in memory meanwhile


class IndexUpdater:
    def __init__(self, store: ReadableStore, index: Index) -> None:
        self.store, self.index, self.ledger = store, index, Ledger(index.database)

    def update(self, pieces: Iterable[Piece]) -> bool:
        """Whether there was anything."""
        changed = False
        for some in _gathered(pieces):
            changed = True
            try:
                self._take(some)
            except BaseException:  # without a row they must not count as known
                self.ledger.forget([attempt.id for piece in some for attempt in piece.attempts])
                raise
        if changed:
            self.index.summarise()
        return changed

    def _take(self, pieces: list[Piece]) -> None:
        new = {
            attempt.id: (piece.location, attempt) for piece in pieces for attempt in piece.attempts
        }
        for piece in pieces:
            self.store.problems.extend(piece.problems)
            if piece.present:
                self.ledger.move(piece.present, piece.location)
        gone = [place for piece in pieces for place in piece.gone]
        lost = self.ledger.at(gone) if gone else {}
        keys = {
            (one.session, one.case.key) for _, one in new.values() if one.task == "measure"
        } | set(lost.values())
        before = self.ledger.members(keys)
        old = self.ledger.rows_of([name for members in before.values() for name in members])
        self.ledger.forget(list(lost))
        self.ledger.note(new)
        records = self._records(keys, new)
        self.index.add(
            (made for record in records if (made := self._made(record))),
            instead_of=old,
            places=gone,
        )
        self._take_foreign(pieces)
        self.ledger.name_rows({one.id: r.attempts[0].id for r in records for one in r.attempts})
        self._mark(pieces, gone)

    def _records(self, keys: Iterable[Key], new: dict[str, tuple[str, Attempt]]) -> list[Record]:
        """Those that changed, with the attempts that were known before."""
        members = self.ledger.members(keys)
        known = {
            name: place
            for group in members.values()
            for name, place in group.items()
            if name not in new
        }
        found = {one.id: one for one in self.store.attempts_at(known)} if known else {}
        found |= {name: one for name, (_, one) in new.items()}
        groups = ([found[name] for name in group if name in found] for group in members.values())
        return [
            Record(attempts=tuple(sorted(group, key=lambda one: one.process)))
            for group in groups
            if group
        ]

    def _made(self, record: Record) -> Row | None:
        """One record that makes no sense must not hide all others."""
        try:
            return make_row(record)
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as problem:
            name = record.attempts[0].id
            self.store.problems.append(
                f"{name}: no result follows from it ({problem!r}); it is left as it is."
            )
            return None

    def _take_foreign(self, pieces: list[Piece]) -> None:
        """Lines are looked at one by one only where some are damaged."""
        lines = ((piece.location, line) for piece in pieces for line in piece.foreign)
        if self.index.add_foreign(
            lines, places=[piece.location for piece in pieces if piece.has_all_rows]
        ):
            for piece in pieces:
                for number, line in enumerate(piece.foreign, 1):
                    list(read_line(Path(piece.location), number, line, self.store.problems))

    def _mark(self, pieces: list[Piece], gone: list[str]) -> None:
        """What has a problem is told again by the next process."""
        marks = {piece.location: piece.mark for piece in pieces if piece.mark}
        self.ledger.mark(
            marks, [piece.location for piece in pieces if piece.mark and not piece.problems]
        )
        if any(place.startswith("parts/") for place in gone):  # others may hold what it held
            gone = [
                *gone,
                *(place for place in self.ledger.marks if place.startswith(("parts/", "journal/"))),
            ]
        if gone:
            self.ledger.unmark(gone)


def _gathered(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """As many as fit. What is gone is taken in at once: what comes after it may be the same again."""
    some, weight = list[Piece](), 0.0
    for piece in pieces:
        some.append(piece)
        weight += (
            1 / MOST_PIECES + len(piece.attempts) / MOST_ATTEMPTS + len(piece.foreign) / MOST_ROWS
        )
        if piece.gone or weight >= 1:
            yield some
            some, weight = [], 0.0
    if some:
        yield some
