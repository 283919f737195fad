"""A team's store: the same attempts, under the same ids, in PostgreSQL. A password is never printed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt
from steptime.store import reader
from steptime.store.reading import ReadingStore

if TYPE_CHECKING:
    import psycopg

FORMAT = 1
CONNECT_SECONDS = 10
SCHEMES = ("postgresql://", "postgres://")


def is_database(word: str) -> bool:
    return word.startswith(SCHEMES)


class PostgresStore(ReadingStore):
    """Reading never writes: a database without tables is an empty store."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.path = named(address)  # for people
        self.problems = []
        self._read: dict[str, Attempt] = {}

    def attempts(self, task: str = "measure") -> list[Attempt]:
        """Each is fetched once: what is stored never changes."""
        question = "SELECT id::text, journal FROM runs WHERE task = %s AND NOT id = ANY(%s::uuid[])"
        self.problems = []
        for identifier, text in self._asked("runs", question, [task, list(self._read)]):
            attempt = reader.parse(text.encode(), Path("runs") / identifier, self.problems)
            if attempt is not None:
                self._read[identifier] = attempt
        return [attempt for _, attempt in sorted(self._read.items()) if attempt.task == task]

    def foreign_runs(self) -> list[ForeignRun]:
        rows = self._asked("foreign_runs", "SELECT row FROM foreign_runs ORDER BY original, id", [])
        return [ForeignRun.from_dict(json.loads(text)) for (text,) in rows]

    def _asked(self, table: str, question: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with connected(self._address) as connection:
            if not _has(connection, table):
                return []
            check_format(connection, self.path)
            return list(connection.execute(question.encode(), values).fetchall())


def _has(connection: psycopg.Connection[Any], table: str) -> bool:
    row = connection.execute("SELECT to_regclass(%s)", [table]).fetchone()
    return row is not None and row[0] is not None


def check_format(connection: psycopg.Connection[Any], name: object) -> None:
    row = connection.execute("SELECT max(format) FROM steptime_store").fetchone()
    if row and row[0] > FORMAT:
        raise SteptimeError(
            f"The store {name} has format {row[0]}, this version reads up to {FORMAT}. Use a newer steptime."
        )


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise NotInstalled("PostgreSQL is spoken to by psycopg; install it: pip install 'steptime[postgres]'") from None
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
    if any("@" in word for word in words) or not str(found.get("port") or 0).replace(",", "").isdigit():
        raise SteptimeError(
            "The database's address can not be read; it is written postgresql://USER:PASSWORD@HOST:PORT/NAME, and in a "
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
        raise SteptimeError(f"The database {named(address)} {reached}: {told} Stored journals are kept.") from None
