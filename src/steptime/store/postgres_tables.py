"""The tables of a team's database: make them, and bring older ones up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steptime.store import versions
from steptime.store.versions import FORMAT

if TYPE_CHECKING:
    import psycopg

# `journal` and `row` are the truth, to the last digit. `record` serves queries: jsonb keeps
# neither NaN nor the order of keys.
# `batch` is the transaction that sent a row: a follower asks for rows newer than those it saw.
BATCH = "batch xid8 NOT NULL DEFAULT pg_current_xact_id()"
IDENTITY = "identity uuid NOT NULL DEFAULT gen_random_uuid()"
TABLES = f"""
CREATE TABLE IF NOT EXISTS steptime_store (format integer NOT NULL, {IDENTITY});
INSERT INTO steptime_store SELECT {FORMAT} WHERE NOT EXISTS (SELECT FROM steptime_store);
CREATE TABLE IF NOT EXISTS runs (
    id uuid PRIMARY KEY, session text NOT NULL, plan text NOT NULL, started timestamptz NOT NULL,
    ended timestamptz NOT NULL, task text NOT NULL, status text NOT NULL, case_key text NOT NULL,
    workload text NOT NULL, framework text NOT NULL, phase text NOT NULL, device text NOT NULL,
    precision text NOT NULL, batch_size integer NOT NULL, machine text NOT NULL,
    record jsonb NOT NULL, journal text NOT NULL, {BATCH}
);
CREATE TABLE IF NOT EXISTS foreign_runs (
    id uuid PRIMARY KEY, source text NOT NULL, original text NOT NULL, started timestamptz,
    record jsonb NOT NULL, row text NOT NULL, {BATCH}
);
CREATE TABLE IF NOT EXISTS machines (fingerprint text PRIMARY KEY, content text NOT NULL);
CREATE TABLE IF NOT EXISTS blobs (sha256 text PRIMARY KEY, content bytea NOT NULL);
"""
UPGRADES = (
    ("steptime_store", "identity", IDENTITY),
    ("runs", "batch", BATCH),
    ("foreign_runs", "batch", BATCH),
)
INDEXES = """
CREATE INDEX IF NOT EXISTS runs_batch ON runs (batch);
CREATE INDEX IF NOT EXISTS foreign_runs_batch ON foreign_runs (batch);
"""
HAS_COLUMN = """
SELECT FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attname = %s AND NOT attisdropped
"""
# What to do about a database of an older format.
RENEW = "Convert the folder and push it to a new database: steptime store convert OLD NEW"
# Any number: two processes that make the tables at once would collide.
LOCK = 0x57E971E


def prepare(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    if has_table(connection, "steptime_store"):
        check_format(connection, name)
    if not has_table(connection, "blobs"):
        connection.execute(TABLES.encode())
        for table, column, definition in UPGRADES:
            if not has_column(connection, table, column):
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {definition}".encode())
        connection.execute(INDEXES.encode())
    connection.commit()


def has_table(connection: psycopg.Connection[Any], table: str) -> bool:
    row = connection.execute("SELECT to_regclass(%s)", [table]).fetchone()
    return row is not None and row[0] is not None


def has_column(connection: psycopg.Connection[Any], table: str, column: str) -> bool:
    return connection.execute(HAS_COLUMN, [table, column]).fetchone() is not None


def check_format(connection: psycopg.Connection[Any], name: object) -> None:
    row = connection.execute("SELECT max(format) FROM steptime_store").fetchone()
    store_format = row[0] if row else None
    if store_format is not None:
        versions.check_format(f"The store {name}", store_format, RENEW)
