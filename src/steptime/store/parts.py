"""Parts: many ended journals in one Parquet file that never changes and is named after its content, so that damage
shows. The journal's text is the truth in it; the other columns are there to be asked, and follow from the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.core.record import Attempt
from steptime.store import reader
from steptime.store.atomic import NotWritten, atomic_write
from steptime.store.blobs import sha256_of
from steptime.store.journal import uuid7
from steptime.store.journals import ENDED, StoredJournal

SCHEMA = "steptime-part/1"
COLUMNS: dict[str, Callable[[Attempt], Any]] = {
    "id": lambda attempt: attempt.id,
    "session": lambda attempt: attempt.session,
    "plan": lambda attempt: attempt.plan,
    "started": lambda attempt: attempt.started,
    "ended": lambda attempt: attempt.ended,
    "task": lambda attempt: attempt.task,
    "status": lambda attempt: attempt.failure.cause if attempt.failure else "ok",
    "case_key": lambda attempt: attempt.case.key,
    "workload": lambda attempt: attempt.case.workload,
    "framework": lambda attempt: attempt.case.framework,
    "phase": lambda attempt: attempt.case.phase,
    "device": lambda attempt: attempt.case.device,
    "precision": lambda attempt: attempt.case.precision,
    "batch_size": lambda attempt: attempt.case.batch_size,
    "machine": lambda attempt: str(attempt.machine.get("fingerprint", "")),
}
LEFT = "the part is left as it is and not used."


class DamagedPart(SteptimeError):
    """It cannot be used; it is never deleted, either."""


def write(folder: Path, day: str, journals: Sequence[StoredJournal]) -> Path:
    """When this returns the file is whole, was read back equal, and is safe on the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / f".{uuid7()}.draft"
    try:
        _copy(scratch, journals)
        if dict(_asked(scratch, "id, record")) != {
            journal.id: journal.text for journal in journals
        }:
            raise DamagedPart(
                "A part did not read back as it was written; the journals are kept. Is the disk sound?"
            )
        path = folder / f"{day}.{sha256_of(scratch)}.parquet"
        with atomic_write(path) as draft:
            scratch.replace(draft)
        return path
    finally:
        scratch.unlink(missing_ok=True)


def is_whole(path: Path) -> bool:
    try:
        return path.name.endswith(f".{sha256_of(path)}.parquet")
    except OSError:
        return False


def ids(path: Path) -> set[str]:
    return {row[0] for row in _trusted(path, "id")}


def texts(path: Path, *, task: str = "", only: Iterable[str] | None = None) -> dict[str, str]:
    """The journals' texts by id: of all, of one task, or of these ids."""
    where, values = ("task = ?", list[Any]([task])) if task else ("TRUE", list[Any]())
    if only is not None:
        where, values = f"{where} AND id IN (SELECT unnest(?))", [*values, list(only)]
    return dict(_trusted(path, "id, record", where, values))


class Parts:
    """All parts of a store. Each is read once: a part never changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[tuple[Path, str], list[Attempt]] = {}

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def attempts(self, task: str, problems: list[str]) -> list[Attempt]:
        return [attempt for path in self.paths() for attempt in self._of(path, task, problems)]

    def _of(self, path: Path, task: str, problems: list[str]) -> list[Attempt]:
        if (path, task) in self._read:
            return self._read[path, task]
        told: list[str] = []
        try:
            attempts = [
                row.attempt
                for row in stored_journals(path, texts(path, task=task), told)
                if row.attempt
            ]
        except DamagedPart as problem:
            attempts, told = [], [str(problem)]
        if not told:  # a problem is told each time
            self._read[path, task] = attempts
        problems += told
        return attempts


def stored_journals(
    path: Path, kept: dict[str, str], problems: list[str]
) -> Iterator[StoredJournal]:
    """These texts of a part as if each were still a journal of its own."""
    for identifier, text in kept.items():
        attempt = reader.parse(text.encode(), path / identifier, problems)
        if attempt is not None:
            yield StoredJournal(path=path, state=ENDED, text=text, attempt=attempt)


def _copy(path: Path, journals: Sequence[StoredJournal]) -> None:
    attempts, written = (
        [one.attempt for one in journals if one.attempt],
        [one.text for one in journals],
    )
    columns = {name: [column(attempt) for attempt in attempts] for name, column in COLUMNS.items()}
    columns["record"] = written
    values = ", ".join(f"unnest(?) AS {name}" for name in columns)
    form = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{schema: '{SCHEMA}'}}"
    target = str(path).replace("'", "''")
    question = f"COPY (SELECT {values} ORDER BY task, id) TO '{target}' ({form})"
    try:
        _database().execute(question, list(columns.values()))
    except _duckdb().IOException as problem:
        raise NotWritten(f"{path} cannot be written: {problem}. The journals are kept.") from None


def _trusted(
    path: Path, columns: str, where: str = "TRUE", values: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    """A flipped bit could make a row vanish from an answer: the whole file is looked at first."""
    if not is_whole(path):
        raise DamagedPart(
            f"{path}: its content is not what its name says; {LEFT} Merging a store with a sound copy mends it."
        )
    return _asked(path, columns, where, values)


def _asked(
    path: Path, columns: str, where: str = "TRUE", values: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    database = _database()
    name = re.sub(r"([*?\[])", r"[\1]", str(path))  # DuckDB would take these for a pattern
    try:
        metadata = "SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)"
        schema = dict(database.execute(metadata, [name]).fetchall()).get("schema")
        if schema != SCHEMA:
            raise DamagedPart(
                f"{path}: written as {schema!r}, this version reads {SCHEMA!r}: use a newer steptime."
            )
        question = f"SELECT {columns} FROM read_parquet(?) WHERE {where} ORDER BY id"
        return list(database.execute(question, [name, *values]).fetchall())
    except _duckdb().Error as problem:
        raise DamagedPart(
            f"{path}: not readable ({str(problem).splitlines()[0]}); {LEFT}"
        ) from None


def _database() -> Any:
    return _connection().cursor()  # a cursor of its own, because a connection serves one thread


@cache
def _connection() -> Any:
    return _duckdb().connect()


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise NotInstalled(
            "Parts are files of DuckDB; install it with: pip install 'steptime[guide]'"
        ) from None
    return duckdb
