"""A team's store: the same attempts, under the same ids, in PostgreSQL. A password is never printed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt
from steptime.store import reader
from steptime.store.blobs import sha256_of
from steptime.store.changes import Piece, Seen
from steptime.store.postgres_tables import check_format, has, has_column
from steptime.store.readable import ReadableStore

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 10
BATCH_ROWS = 1000
SCHEMES = ("postgresql://", "postgres://")


def is_database(word: str) -> bool:
    return word.startswith(SCHEMES)


class PostgresStore(ReadableStore):
    """Reading never writes: a database without tables is an empty store."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.path = named(address)  # for people
        self.problems = []
        self._read: dict[str, Attempt] = {}

    def attempts(self, task: str = "measure") -> list[Attempt]:
        """Each is fetched once: what is stored never changes."""
        question = "SELECT id::text, journal FROM runs WHERE task = %s AND NOT id = ANY(%s::uuid[])"
        self.problems = []
        rows = self._asked("runs", question, [task, list(self._read)])
        self._read |= {attempt.id: attempt for attempt in _attempts(rows, self.problems)}
        return [attempt for _, attempt in sorted(self._read.items()) if attempt.task == task]

    def foreign_runs(self) -> list[ForeignRun]:
        rows = self._asked("foreign_runs", "SELECT row FROM foreign_runs ORDER BY original, id", [])
        return [ForeignRun.from_dict(json.loads(text)) for (text,) in rows]

    def news(self, seen: Seen) -> Iterator[Piece]:
        with connected(self.address) as connection:
            for table in ("runs", "foreign_runs"):
                if has(connection, table):
                    check_format(connection, self.path)
                    yield from _news(connection, table, seen, self.path)

    def attempts_at(self, places: Mapping[str, str]) -> list[Attempt]:
        rows = self._asked(
            "runs", "SELECT id::text, journal FROM runs WHERE id = ANY(%s::uuid[])", [list(places)]
        )
        return list(_attempts(rows, self.problems))

    def foreign_at(self, places: Mapping[str, str]) -> list[ForeignRun]:
        question = "SELECT row FROM foreign_runs WHERE id = ANY(%s::uuid[])"
        rows = self._asked("foreign_runs", question, [list(places)])
        return [ForeignRun.from_dict(json.loads(text)) for (text,) in rows]

    def machines(self) -> list[dict[str, Any]]:
        rows = self._asked(
            "machines", "SELECT fingerprint, content FROM machines ORDER BY fingerprint", []
        )
        return [
            {"fingerprint": fingerprint, **json.loads(content)} for fingerprint, content in rows
        ]

    def blob(self, sha256: str) -> bytes | None:
        rows = self._asked("blobs", "SELECT content FROM blobs WHERE sha256 = %s", [sha256])
        return next(
            (bytes(content) for (content,) in rows if sha256_of(bytes(content)) == sha256), None
        )

    def _asked(self, table: str, question: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with connected(self.address) as connection:
            if not has(connection, table):
                return []
            check_format(connection, self.path)
            return list(connection.execute(question.encode(), values).fetchall())


def _news(
    connection: psycopg.Connection[Any], table: str, seen: Seen, name: object
) -> Iterator[Piece]:
    """A transaction may end after one that began later: all that had not ended at the last look are asked for again."""
    if not has_column(connection, table, "batch"):
        raise SteptimeError(
            f"The tables of {name} are old: `steptime store push` brings them up to date."
        )
    question = (
        "SELECT identity::text, pg_snapshot_xmin(pg_current_snapshot())::text FROM steptime_store"
    )
    (identity, unseen) = connection.execute(question).fetchone() or ("", "0")
    was, _, since = seen.marks.get(table, "").partition(" ")
    if was not in ("", identity):
        yield Piece(gone=frozenset({table}))  # another database has this name now
    since = since if was == identity else "0"
    found = connection.execute(
        f"SELECT id::text FROM {table} WHERE batch >= %s::xid8".encode(), [since]
    )
    ids = {row[0] for row in found}
    wanted, column = sorted(ids - seen.known(ids)), "journal" if table == "runs" else "row"
    fetch = (
        f"SELECT id::text, {column} FROM {table} WHERE id = ANY(%s::uuid[]) ORDER BY id".encode()
    )
    for first in range(0, len(wanted), BATCH_ROWS):
        rows = connection.execute(fetch, [wanted[first : first + BATCH_ROWS]]).fetchall()
        yield _piece(table, rows)
    yield Piece(place=table, mark=f"{identity} {unseen}")


def _piece(table: str, rows: list[tuple[Any, ...]]) -> Piece:
    problems: list[str] = []
    if table == "runs":
        attempts = tuple(_attempts(rows, problems))
        return Piece(place=table, attempts=attempts, problems=tuple(problems))
    return Piece(place=table, foreign=tuple(text.encode() for _, text in rows))


def _attempts(rows: list[tuple[Any, ...]], problems: list[str]) -> Iterator[Attempt]:
    for identifier, text in rows:
        attempt = reader.parse(text.encode(), Path("runs") / identifier, problems)
        if attempt is not None:
            yield attempt


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise NotInstalled(
            "PostgreSQL is spoken to by psycopg; install it: pip install 'steptime[postgres]'"
        ) from None
    return psycopg


def _parsed(address: str) -> dict[str, Any]:
    """What was found is not told: a mistake in an address is often a mistake about its password."""
    _psycopg()
    import psycopg.conninfo

    try:
        found = dict(psycopg.conninfo.conninfo_to_dict(address))
    except psycopg.Error:
        found = {"host": "@"}
    words = [str(found.get(name) or "") for name in ("host", "dbname")]
    if (
        any("@" in word for word in words)
        or not str(found.get("port") or 0).replace(",", "").isdigit()
    ):
        raise SteptimeError(
            "The database's address cannot be read; it is written postgresql://USER:PASSWORD@HOST:PORT/NAME, and in a "
            "password @ is %40, / is %2F, ? is %3F, % is %25. Better leave the password to PGPASSWORD or ~/.pgpass."
        )
    return found


def named(address: str) -> str:
    """The database without its user and password."""
    found = _parsed(address)
    port = f":{found['port']}" if found.get("port") else ""
    return f"postgresql://{found.get('host', '')}{port}/{found.get('dbname', '')}"


@contextlib.contextmanager
def connected(address: str) -> Iterator[psycopg.Connection[Any]]:
    words, psycopg = {"connect_timeout": CONNECT_SECONDS, **_parsed(address)}, _psycopg()
    try:
        with psycopg.connect(**words) as connection:
            yield connection
    except psycopg.Error as problem:
        told = " ".join(str(problem).split())[:300]
        for secret in filter(None, (words.get("password"), words.get("sslpassword"))):
            told = told.replace(str(secret), "…")
        reached = "does not answer" if isinstance(problem, psycopg.OperationalError) else "refuses"
        raise SteptimeError(
            f"The database {named(address)} {reached}: {told} Stored journals are kept."
        ) from None
