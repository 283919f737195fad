"""The guide's questions answered by SQLite and PostgreSQL, from the same rows.

Both have an index for the narrow question."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from steptime.index import sql
from steptime.index.index import Index
from steptime.index.query import Query, from_url

NARROW = ("model", "phase", "framework", "device", "precision")
SUMMARY = ("n", "least", "most", "total")
INITDB = [
    "initdb", "-D", "data", "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync",
    "--no-instructions",
]  # fmt: skip


class Statement(NamedTuple):
    text: str
    values: list[Any]


# Runs statements one after the other and returns the CPU seconds of the database.
Ask = Callable[[list[Statement]], float]


class Question(NamedTuple):
    name: str
    ask_guide: Callable[[], Any]
    sqlite: list[Statement]
    postgres: list[Statement]


def compare_databases(
    index: Index, questions: dict[str, str], facets: list[str], *, cells: bool
) -> Iterator[str]:
    """Lines of a table: CPU milliseconds, and the ratio to the guide's. The databases have all
    rows, or the cells."""
    columns = _column_types(index, cells, facets)
    content = "the same cells" if cells else "all rows"
    yield f"the guide, and databases with {content}, CPU ms (ratio to the guide):"
    yield "question   answer          guide              SQLite          PostgreSQL"
    with (
        tempfile.TemporaryDirectory(prefix="steptime-databases-") as folder,
        _start_postgres(Path(folder)) as connection,
    ):
        ask_sqlite = _fill_sqlite(_read_rows(index, cells, list(columns)), columns)
        ask_postgres = None
        if connection:
            rows = _read_rows(index, cells, list(columns))
            ask_postgres = _fill_postgres(connection, rows, columns)
        for label, text in questions.items():
            for question in _questions(index, from_url(text), facets, cells):
                guide_seconds = _least_seconds(question.ask_guide)
                sqlite = _cell(ask_sqlite, question.sqlite, guide_seconds)
                postgres = _cell(ask_postgres, question.postgres, guide_seconds)
                milliseconds = 1000 * guide_seconds
                yield f"{label:<10} {question.name:<12} {milliseconds:>8.1f} {sqlite} {postgres}"


def _cell(ask: Ask | None, statements: list[Statement], guide_seconds: float) -> str:
    if ask is None:
        return f"{'–':>19}"
    seconds = min(ask(statements) for _ in range(3))
    text = f"{1000 * seconds:,.1f} ({seconds / guide_seconds:,.1f}×)"
    return f"{text:>19}"


def _questions(index: Index, query: Query, facets: list[str], cells: bool) -> list[Question]:
    chart = [_chart(query, cells)]
    by_facet = {name: _facet(query, name, cells) for name in facets}
    filtered = {key for key, _ in query.conditions}
    free = [name for name in facets if name not in filtered]
    # PostgreSQL counts all facets without a filter at once; SQLite has no grouping sets.
    grouped = [_grouping_sets(query, free, cells)]
    filtered_facets = [by_facet[name] for name in facets if name in filtered]
    if filtered_facets:
        grouped.append(_union(filtered_facets))
    return [
        Question("chart", lambda: index.points(query), chart, chart),
        Question(
            "12 facets",
            lambda: index.facets(query, facets),
            [_union(list(by_facet.values()))],
            grouped,
        ),
    ]


def _chart(query: Query, cells: bool) -> Statement:
    """SQLite has no standard deviation, so rows give a sum of squares."""
    condition, values = sql.make_condition(query, query.conditions, cells=cells)
    groups = ", ".join(sql.quote(name) for name in query.groups)
    y = sql.quote(query.y)
    summary = f"count({y}), min({y}), max({y}), avg({y}), sum({y} * {y})"
    if cells:
        n, least, most, total = (sql.quote(f"{query.y}_{name}") for name in SUMMARY)
        summary = f"sum({n}), min({least}), max({most}), sum({total}) / sum({n})"
    text = f"SELECT {groups}, {summary} FROM runs WHERE {condition} GROUP BY {groups}"
    return Statement(text, list(values))


def _facet(query: Query, name: str, cells: bool) -> Statement:
    """The values of a facet are counted without the facet's own filter."""
    conditions = tuple(pair for pair in query.conditions if pair[0] != name)
    condition, values = sql.make_condition(query, conditions, cells=cells)
    column = f"CAST({sql.quote(name)} AS VARCHAR)"
    count = _count(query, cells)
    text = f"SELECT '{name}', {column}, {count} FROM runs WHERE {condition} GROUP BY 2"
    return Statement(text, list(values))


def _grouping_sets(query: Query, names: list[str], cells: bool) -> Statement:
    condition, values = sql.make_condition(query, query.conditions, cells=cells)
    columns = ", ".join(sql.quote(name) for name in names)
    sets = ", ".join(f"({sql.quote(name)})" for name in names)
    count = _count(query, cells)
    text = f"SELECT {columns}, {count} FROM runs WHERE {condition} GROUP BY GROUPING SETS ({sets})"
    return Statement(text, list(values))


def _count(query: Query, cells: bool) -> str:
    return f"sum({sql.quote(f'{query.y}_n')})" if cells else "count(*)"


def _union(statements: list[Statement]) -> Statement:
    text = " UNION ALL ".join(statement.text for statement in statements)
    values: list[Any] = []
    for statement in statements:
        values.extend(statement.values)
    return Statement(text, values)


def _least_seconds(ask: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(5):
        begin = time.process_time()
        ask()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def _column_types(index: Index, cells: bool, facets: list[str]) -> dict[str, str]:
    """Only the columns of the questions: narrow rows favour databases that store rows."""
    metrics = [f"throughput_{name}" for name in SUMMARY] if cells else ["throughput"]
    names = dict.fromkeys([*facets, *NARROW, "replica_batch", "status", "plausible", *metrics])
    columns = ", ".join(sql.quote(name) for name in names)
    table = "cells" if cells else "runs"
    description = index.database.execute(f"SELECT {columns} FROM {table} LIMIT 0").description
    types = {}
    for column in description:
        types[column[0]] = "text" if str(column[1]) == "VARCHAR" else "double precision"
    return types


def _read_rows(index: Index, cells: bool, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    names = ", ".join(sql.quote(name) for name in columns)
    table = "cells" if cells else "runs"
    cursor = index.database.cursor().execute(f"SELECT {names} FROM {table}")
    while rows := cursor.fetchmany(10_000):
        yield from rows


def _create_table(columns: dict[str, str]) -> str:
    definitions = ", ".join(f"{sql.quote(name)} {kind}" for name, kind in columns.items())
    return f"CREATE TABLE runs ({definitions})"


def _create_index() -> str:
    names = ", ".join(sql.quote(name) for name in NARROW)
    return f"CREATE INDEX narrow ON runs ({names})"


def _fill_sqlite(rows: Iterator[tuple[Any, ...]], columns: dict[str, str]) -> Ask:
    # In memory: a disk would only add time.
    database = sqlite3.connect(":memory:")
    database.execute(_create_table(columns))
    database.executemany(f"INSERT INTO runs VALUES ({', '.join('?' * len(columns))})", rows)
    database.execute(_create_index())
    database.execute("ANALYZE")

    def ask(statements: list[Statement]) -> float:
        begin = time.process_time()
        for statement in statements:
            database.execute(statement.text, statement.values).fetchall()
        return time.process_time() - begin

    return ask


def _fill_postgres(
    connection: Any, rows: Iterator[tuple[Any, ...]], columns: dict[str, str]
) -> Ask:
    connection.execute(_create_table(columns))
    with connection.cursor().copy("COPY runs FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    connection.execute(_create_index())
    # So that one process uses all the CPU time.
    connection.execute("SET max_parallel_workers_per_gather = 0")
    connection.execute("VACUUM ANALYZE runs")
    (process,) = connection.execute("SELECT pg_backend_pid()").fetchone()

    def ask(statements: list[Statement]) -> float:
        begin = _cpu_seconds(process)
        for statement in statements:
            # psycopg has another placeholder than SQLite and DuckDB.
            connection.execute(statement.text.replace("?", "%s"), statement.values).fetchall()
        return _cpu_seconds(process) - begin

    return ask


def _cpu_seconds(process: int) -> float:
    """Of another process, in nanoseconds if the kernel has them."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


@contextmanager
def _start_postgres(folder: Path) -> Iterator[Any]:
    """A server without durability, as fast as it can be. None if PostgreSQL is not installed."""
    if not shutil.which("initdb") or not shutil.which("postgres"):
        yield None
        return
    account: dict[str, Any] = {}
    # The server refuses to run as root.
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(folder, user.pw_uid, user.pw_gid)
    subprocess.run(INITDB, cwd=folder, check=True, stdout=subprocess.DEVNULL, **account)
    with (folder / "data" / "postgresql.conf").open("a") as file:
        file.write(f"listen_addresses=''\nunix_socket_directories='{folder}'\nfsync=off\n")
        file.write("shared_buffers=1GB\nwork_mem=256MB\n")
    process = subprocess.Popen(
        ["postgres", "-D", "data"], cwd=folder, stderr=subprocess.DEVNULL, **account
    )
    try:
        yield _connect(folder, process)
    finally:
        # The fast shutdown, which does not wait for open connections.
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _connect(folder: Path, process: subprocess.Popen[bytes]) -> Any:
    """None if the server ended instead."""
    import psycopg

    while process.poll() is None:
        try:
            return psycopg.connect(
                host=str(folder), user="test", dbname="postgres", autocommit=True
            )
        except psycopg.OperationalError:
            time.sleep(0.1)
    return None
