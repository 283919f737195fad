"""Brings the index up to date: makes rows of what is new or changed, and drops what is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from steptime.analysis.session_deviation import SessionValue, session_value
from steptime.core.record import Attempt, Record
from steptime.index.index import Index
from steptime.index.provenance import Key, Ledger
from steptime.index.rows import Row, make_row
from steptime.index.session_history import SessionHistory
from steptime.store.changes import Piece
from steptime.store.imported_rows import read_line
from steptime.store.readable import ReadableStore

# How much is read together: it is in memory meanwhile.
MOST_PIECES = 5_000
MOST_ATTEMPTS = 2_000
MOST_ROWS = 50_000

NewAttempts = dict[str, tuple[str, Attempt]]  # by id, each with where it is stored


class IndexUpdater:
    def __init__(self, store: ReadableStore, index: Index) -> None:
        self.store = store
        self.index = index
        self.ledger = Ledger(index.database)
        self.history = SessionHistory(index.database)

    def update(self, pieces: Iterable[Piece]) -> bool:
        """Whether there was anything new."""
        changed = False
        for batch in _batches(pieces):
            changed = True
            try:
                self._add(batch)
            except BaseException:
                # Without a row, these attempts must not count as read.
                ids = [attempt.id for piece in batch for attempt in piece.attempts]
                self.ledger.forget(ids)
                raise
        if changed:
            self.index.summarise()
        return changed

    def _add(self, pieces: list[Piece]) -> None:
        new: NewAttempts = {}
        gone: list[str] = []
        for piece in pieces:
            self.store.problems.extend(piece.problems)
            if piece.present:
                self.ledger.move(piece.present, piece.location)
            for attempt in piece.attempts:
                new[attempt.id] = (piece.location, attempt)
            gone.extend(piece.gone)
        lost = self.ledger.keys_at(gone) if gone else {}
        keys = _changed_keys(new, lost)
        outdated = self._rows_of_records(keys)
        # From here on the ledger is ahead of the rows: a failure must take it back.
        self.ledger.forget(list(lost))
        self.ledger.note(new)
        records = self._read_records(keys, new)
        values: dict[str, SessionValue] = {}
        self.index.add(self._make_rows(records, values), instead_of=outdated, places=gone)
        self.history.replace(outdated, values)
        self._add_imported(pieces)
        self.ledger.name_rows(_row_names(records))
        self._mark(pieces, gone)

    def _rows_of_records(self, keys: Iterable[Key]) -> list[str]:
        ids = [name for members in self.ledger.members(keys).values() for name in members]
        return self.ledger.rows_of(ids)

    def _read_records(self, keys: Iterable[Key], new: NewAttempts) -> list[Record]:
        """The records that changed, with the attempts that were known before."""
        members = self.ledger.members(keys)
        older: dict[str, str] = {}
        for group in members.values():
            for name, location in group.items():
                if name not in new:
                    older[name] = location
        attempts = {name: attempt for name, (_, attempt) in new.items()}
        if older:
            for attempt in self.store.attempts_at(older):
                attempts[attempt.id] = attempt
        records = []
        for group in members.values():
            present = [attempts[name] for name in group if name in attempts]
            if present:
                present.sort(key=lambda attempt: attempt.process)
                records.append(Record(attempts=tuple(present)))
        return records

    def _make_rows(
        self, records: Iterable[Record], values: dict[str, SessionValue]
    ) -> Iterator[Row]:
        """Also fills `values` with what each record says about its session.

        A record that makes no sense must not hide all others."""
        for record in records:
            try:
                row = make_row(record)
                value = session_value(record)
                if value is not None:
                    values[row["id"]] = value
                yield row
            except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as problem:
                name = record.attempts[0].id
                self.store.problems.append(
                    f"{name}: no result follows from it ({problem!r}); it is left as it is."
                )

    def _add_imported(self, pieces: list[Piece]) -> None:
        lines = ((piece.location, line) for piece in pieces for line in piece.foreign)
        complete = [piece.location for piece in pieces if piece.has_all_rows]
        if not self.index.add_imported(lines, places=complete):
            return
        # Some lines are damaged: only now is each parsed, to report which.
        for piece in pieces:
            for number, line in enumerate(piece.foreign, 1):
                list(read_line(Path(piece.location), number, line, self.store.problems))

    def _mark(self, pieces: list[Piece], gone: Sequence[str]) -> None:
        """A piece with a problem is read again by the next process, which reports it again."""
        marked = [piece for piece in pieces if piece.mark]
        marks = {piece.location: piece.mark for piece in marked}
        sound = [piece.location for piece in marked if not piece.problems]
        self.ledger.mark(marks, sound)
        outdated = list(gone)
        # Other parts and journals may hold what a part held that is gone.
        if any(location.startswith("parts/") for location in gone):
            for location in self.ledger.marks:
                if location.startswith(("parts/", "journal/")):
                    outdated.append(location)
        if outdated:
            self.ledger.unmark(outdated)


def _changed_keys(new: NewAttempts, lost: dict[str, Key]) -> set[Key]:
    """The records that gained or lost attempts."""
    keys = set(lost.values())
    for _, attempt in new.values():
        if attempt.task == "measure":
            keys.add((attempt.session, attempt.case.key))
    return keys


def _row_names(records: Iterable[Record]) -> dict[str, str]:
    """The row of each attempt: it has the id of the record's first attempt."""
    names = {}
    for record in records:
        for attempt in record.attempts:
            names[attempt.id] = record.attempts[0].id
    return names


def _batches(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """As many pieces as fit into memory.

    A piece that is gone ends its batch: what comes after it may be the same again."""
    batch: list[Piece] = []
    weight = 0.0
    for piece in pieces:
        batch.append(piece)
        weight += 1 / MOST_PIECES
        weight += len(piece.attempts) / MOST_ATTEMPTS
        weight += len(piece.foreign) / MOST_ROWS
        if piece.gone or weight >= 1:
            yield batch
            batch = []
            weight = 0.0
    if batch:
        yield batch
