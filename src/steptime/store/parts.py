"""Parts: Parquet files of many ended journals. A part never changes.

It is named after its content, so that damage shows. The journal's text is the truth in it; the
other columns follow from the text and serve queries."""

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
from steptime.store.blobs import MISNAMED, sha256_of
from steptime.store.journal import uuid7
from steptime.store.journals import ENDED, StoredJournal
from steptime.store.permissions import make_folder
from steptime.store.versions import PART_SCHEMA, schema_problem

# Each column follows from the attempt, so that a query need not parse the text.
COLUMNS: dict[str, Callable[[Attempt], Any]] = {
    "id": lambda attempt: attempt.id,
    "session": lambda attempt: attempt.session,
    "plan": lambda attempt: attempt.plan,
    "started": lambda attempt: attempt.started,
    "ended": lambda attempt: attempt.ended,
    "task": lambda attempt: attempt.task,
    "status": lambda attempt: attempt.failure.cause.value if attempt.failure else "ok",
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
METADATA = "SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)"


class DamagedPart(SteptimeError):
    """The part cannot be used. It is never deleted."""


def write(folder: Path, day: str, journals: Sequence[StoredJournal]) -> Path:
    """Write one part. When this returns it was read back equal and is safe on the disk."""
    make_folder(folder)
    scratch = folder / f".{uuid7()}.draft"
    texts = {journal.id: journal.text for journal in journals}
    try:
        _write_parquet(scratch, journals)
        if dict(_Query("id, record").run(scratch)) != texts:
            raise DamagedPart(
                "A part did not read back as it was written; the journals are kept. Check the disk."
            )
        # The name is known only now, because it holds the hash of the content.
        path = folder / f"{day}.{sha256_of(scratch)}.parquet"
        with atomic_write(path) as draft:
            scratch.replace(draft)
        return path
    finally:
        scratch.unlink(missing_ok=True)


def is_intact(path: Path) -> bool:
    try:
        return path.name.endswith(f".{sha256_of(path)}.parquet")
    except OSError:
        return False


def ids(path: Path) -> set[str]:
    return {row[0] for row in _Query("id").run_intact(path)}


def texts(
    path: Path,
    *,
    task: str = "",
    only: Iterable[str] | None = None,
    schema: str = "",
) -> dict[str, str]:
    """The journals' texts by id: all of them, those of one task, or those of some ids.

    `schema` is that of an older part, if one is to be read."""
    query = _Query("id, record", schema=schema)
    if task:
        query.add_condition("task = ?", task)
    if only is not None:
        query.add_condition("id IN (SELECT unnest(?))", list(only))
    return dict(query.run_intact(path))


class Parts:
    """All parts of a store. Each is read once, because a part never changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cache: dict[tuple[Path, str], list[Attempt]] = {}

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def attempts(self, task: str, problems: list[str]) -> list[Attempt]:
        attempts: list[Attempt] = []
        for path in self.paths():
            attempts += self._attempts_of(path, task, problems)
        return attempts

    def _attempts_of(self, path: Path, task: str, problems: list[str]) -> list[Attempt]:
        if (path, task) in self._cache:
            return self._cache[path, task]
        new_problems: list[str] = []
        try:
            journals = stored_journals(path, texts(path, task=task), new_problems)
            attempts = [journal.attempt for journal in journals if journal.attempt]
        except DamagedPart as problem:
            attempts = []
            new_problems = [str(problem)]
        # A part with a problem is read again, so that the problem is reported each time.
        if not new_problems:
            self._cache[path, task] = attempts
        problems += new_problems
        return attempts


def stored_journals(
    path: Path, texts_by_id: dict[str, str], problems: list[str]
) -> Iterator[StoredJournal]:
    """These texts of a part, as if each were still a file of its own."""
    for identifier, text in texts_by_id.items():
        attempt = reader.parse(text.encode(), path / identifier, problems)
        if attempt is not None:
            yield StoredJournal(path=path, state=ENDED, text=text, attempt=attempt)


def _write_parquet(path: Path, journals: Sequence[StoredJournal]) -> None:
    attempts = [journal.attempt for journal in journals if journal.attempt]
    columns: dict[str, list[Any]] = {}
    for name, column in COLUMNS.items():
        columns[name] = [column(attempt) for attempt in attempts]
    columns["record"] = [journal.text for journal in journals]
    values = ", ".join(f"unnest(?) AS {name}" for name in columns)
    options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{schema: '{PART_SCHEMA}'}}"
    target = str(path).replace("'", "''")
    query = f"COPY (SELECT {values} ORDER BY task, id) TO '{target}' ({options})"
    try:
        _cursor().execute(query, list(columns.values()))
    except _duckdb().IOException as problem:
        raise NotWritten(f"{path} cannot be written: {problem}. The journals are kept.") from None
    except (_duckdb().Error, UnicodeError) as problem:
        raise DamagedPart(f"no part can hold it ({str(problem).splitlines()[0]}).") from None


class _Query:
    """A SELECT of some columns of a part, in the order of the ids."""

    def __init__(self, columns: str, schema: str = "") -> None:
        self.columns = columns
        self.schema = schema or PART_SCHEMA
        self.conditions = ["TRUE"]
        self.values: list[Any] = []

    def add_condition(self, condition: str, value: Any) -> None:
        self.conditions.append(condition)
        self.values.append(value)

    def run_intact(self, path: Path) -> list[tuple[Any, ...]]:
        """Check the hash of the file first: a flipped bit could make a row vanish unnoticed."""
        if not is_intact(path):
            raise DamagedPart(
                f"{path}: {MISNAMED}; {LEFT} Merge a store with an intact copy to repair it."
            )
        return self.run(path)

    def run(self, path: Path) -> list[tuple[Any, ...]]:
        # DuckDB would take these characters for a pattern.
        name = re.sub(r"([*?\[])", r"[\1]", str(path))
        condition = " AND ".join(self.conditions)
        query = f"SELECT {self.columns} FROM read_parquet(?) WHERE {condition} ORDER BY id"
        try:
            cursor = _cursor()
            metadata = dict(cursor.execute(METADATA, [name]).fetchall())
            if problem := schema_problem(metadata.get("schema"), self.schema):
                raise DamagedPart(f"{path}: {problem}.")
            return list(cursor.execute(query, [name, *self.values]).fetchall())
        except _duckdb().Error as problem:
            first_line = str(problem).splitlines()[0]
            raise DamagedPart(f"{path}: not readable ({first_line}); {LEFT}") from None


def _cursor() -> Any:
    """A new one for each query, because a connection serves one thread."""
    return _connection().cursor()


@cache
def _connection() -> Any:
    return _duckdb().connect()


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise NotInstalled("Parts of a store need DuckDB: pip install 'steptime[report]'") from None
    return duckdb
