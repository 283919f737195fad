"""A team's store in PostgreSQL: the same attempts under the same ids. Passwords are never shown."""

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
from steptime.store.imported_rows import parse_row
from steptime.store.postgres_tables import check_format, has_column, has_table
from steptime.store.readable import ReadableStore

if TYPE_CHECKING:
    import psycopg

# Without a limit a firewall that drops packets would block for minutes.
CONNECT_SECONDS = 10
# Rows per answer, so that not all journals are in memory at once.
BATCH_ROWS = 1000
SCHEMES = ("postgresql://", "postgres://")

Row = tuple[Any, ...]

MEASURED = "SELECT id::text, journal FROM runs WHERE task = %s AND NOT id = ANY(%s::uuid[])"
SNAPSHOT = """
SELECT identity::text, pg_snapshot_xmin(pg_current_snapshot())::text FROM steptime_store
"""
UNREADABLE = (
    "The database's address cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/NAME "
    "and in a password %40 for @, %2F for /, %3F for ?, %25 for %. "
    "Better leave the password to PGPASSWORD or ~/.pgpass."
)


def is_database(address: str) -> bool:
    return address.startswith(SCHEMES)


class PostgresStore(ReadableStore):
    """Reading never writes: a database without tables is an empty store."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.path = public_address(address)
        self.problems = []
        self._attempts: dict[str, Attempt] = {}

    def attempts(self, task: str = "measure") -> list[Attempt]:
        """Each is fetched once, because what is stored never changes."""
        self.problems = []
        rows = self._query("runs", MEASURED, [task, list(self._attempts)])
        for attempt in _parse_attempts(rows, self.problems):
            self._attempts[attempt.id] = attempt
        ordered = sorted(self._attempts.items())
        return [attempt for _, attempt in ordered if attempt.task == task]

    def foreign_runs(self) -> list[ForeignRun]:
        query = "SELECT id::text, row FROM foreign_runs ORDER BY original, id"
        return _parse_foreign(self._query("foreign_runs", query, []), self.problems)

    def news(self, seen: Seen) -> Iterator[Piece]:
        with connect(self.address) as connection:
            for table in ("runs", "foreign_runs"):
                if has_table(connection, table):
                    check_format(connection, self.path)
                    yield from _table_news(connection, table, seen, self.path)

    def attempts_at(self, places: Mapping[str, str]) -> list[Attempt]:
        query = "SELECT id::text, journal FROM runs WHERE id = ANY(%s::uuid[])"
        rows = self._query("runs", query, [list(places)])
        return list(_parse_attempts(rows, self.problems))

    def foreign_at(self, places: Mapping[str, str]) -> list[ForeignRun]:
        query = "SELECT id::text, row FROM foreign_runs WHERE id = ANY(%s::uuid[])"
        return _parse_foreign(self._query("foreign_runs", query, [list(places)]), self.problems)

    def machines(self) -> list[dict[str, Any]]:
        query = "SELECT fingerprint, content FROM machines ORDER BY fingerprint"
        machines = []
        for fingerprint, content in self._query("machines", query, []):
            try:
                machines.append({"fingerprint": fingerprint, **json.loads(content)})
            except (ValueError, TypeError, RecursionError):
                self.problems.append(f"machines/{fingerprint}: set aside (not readable).")
        return machines

    def blob(self, sha256: str) -> bytes | None:
        rows = self._query("blobs", "SELECT content FROM blobs WHERE sha256 = %s", [sha256])
        for (content,) in rows:
            data = bytes(content)
            if sha256_of(data) == sha256:
                return data
        return None

    def _query(self, table: str, query: str, values: Sequence[Any]) -> list[Row]:
        with connect(self.address) as connection:
            if not has_table(connection, table):
                return []
            check_format(connection, self.path)
            return list(connection.execute(query.encode(), values).fetchall())


def _table_news(
    connection: psycopg.Connection[Any], table: str, seen: Seen, name: object
) -> Iterator[Piece]:
    """The rows of one table that the follower has not seen.

    A transaction may end after one that began later. So the mark is the oldest transaction that
    had not ended at the last look, and all rows since then are asked for again."""
    if not has_column(connection, table, "batch"):
        raise SteptimeError(
            f"The tables of {name} are old: `steptime store push` brings them up to date."
        )
    identity, oldest_open = connection.execute(SNAPSHOT.encode()).fetchone() or ("", "0")
    seen_identity, _, since = seen.marks.get(table, "").partition(" ")
    if seen_identity not in ("", identity):
        # Another database has this name now.
        yield Piece(gone=frozenset({table}))
    if seen_identity != identity:
        since = "0"
    new_ids = f"SELECT id::text FROM {table} WHERE batch >= %s::xid8"
    ids = {row[0] for row in connection.execute(new_ids.encode(), [since])}
    unread = sorted(ids - seen.known_ids(ids))
    column = "journal" if table == "runs" else "row"
    fetch = f"SELECT id::text, {column} FROM {table} WHERE id = ANY(%s::uuid[]) ORDER BY id"
    for first in range(0, len(unread), BATCH_ROWS):
        batch = unread[first : first + BATCH_ROWS]
        yield _piece(table, connection.execute(fetch.encode(), [batch]).fetchall())
    yield Piece(location=table, mark=f"{identity} {oldest_open}")


def _piece(table: str, rows: list[Row]) -> Piece:
    problems: list[str] = []
    if table == "runs":
        attempts = tuple(_parse_attempts(rows, problems))
        return Piece(location=table, attempts=attempts, problems=tuple(problems))
    return Piece(location=table, foreign=tuple(text.encode() for _, text in rows))


def _parse_attempts(rows: list[Row], problems: list[str]) -> Iterator[Attempt]:
    for identifier, text in rows:
        attempt = reader.parse(text.encode(), Path("runs") / identifier, problems)
        if attempt is not None:
            yield attempt


def _parse_foreign(rows: list[Row], problems: list[str]) -> list[ForeignRun]:
    runs = []
    for identifier, text in rows:
        try:
            runs.append(parse_row(text))
        except (ValueError, RecursionError) as problem:
            problems.append(f"foreign_runs/{identifier}: set aside ({problem}).")
    return runs


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise NotInstalled(
            "PostgreSQL needs psycopg; install it with: pip install 'steptime[postgres]'"
        ) from None
    return psycopg


def _parse_address(address: str) -> dict[str, Any]:
    """Its error does not repeat the address, which may hold a mistyped password."""
    _psycopg()
    import psycopg.conninfo

    try:
        settings = dict(psycopg.conninfo.conninfo_to_dict(address))
    # A byte that is not UTF-8 is no psycopg.Error.
    except (psycopg.Error, UnicodeError):
        raise SteptimeError(UNREADABLE) from None
    host = str(settings.get("host") or "")
    database = str(settings.get("dbname") or "")
    ports = str(settings.get("port") or 0).replace(",", "")
    # An @ in the host or the name is the end of a password that was not escaped.
    if "@" in host or "@" in database or not ports.isdigit():
        raise SteptimeError(UNREADABLE)
    return settings


def public_address(address: str) -> str:
    """The database without its user and password."""
    settings = _parse_address(address)
    port = f":{settings['port']}" if settings.get("port") else ""
    return f"postgresql://{settings.get('host', '')}{port}/{settings.get('dbname', '')}"


@contextlib.contextmanager
def connect(address: str) -> Iterator[psycopg.Connection[Any]]:
    settings = {"connect_timeout": CONNECT_SECONDS, **_parse_address(address)}
    psycopg = _psycopg()
    try:
        with psycopg.connect(**settings) as connection:
            yield connection
    except psycopg.Error as problem:
        answer = " ".join(str(problem).split())[:300]
        for name in ("password", "sslpassword"):
            if settings.get(name):
                answer = answer.replace(str(settings[name]), "…")
        is_unreachable = isinstance(problem, psycopg.OperationalError)
        verb = "does not answer" if is_unreachable else "refuses"
        raise SteptimeError(
            f"The database {public_address(address)} {verb}: {answer} Stored journals are kept."
        ) from None
