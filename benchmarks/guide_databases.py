"""The guide's questions asked of SQLite and PostgreSQL: the same rows, each with an index for the narrow question."""

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
from functools import partial
from pathlib import Path
from typing import Any

from steptime.index import sql
from steptime.index.index import Index
from steptime.index.query import Query, from_url

NARROW = ("model", "phase", "framework", "device", "precision")
Ask = Callable[[str, list[Any]], tuple[float, list[tuple[Any, ...]]]]


def sides(
    index: Index, questions: dict[str, str], names: list[str], *, cells: bool
) -> Iterator[str]:
    """Lines of a table: CPU milliseconds, and how many times the guide's. The others have all rows, or the cells."""
    columns = _columns(index, cells, names)
    table = partial(_rows, index, cells, list(columns))
    yield f"the guide, and the others with {'the same cells' if cells else 'all rows'}, CPU ms (times the guide's):"
    yield "question   answer          guide              SQLite          PostgreSQL"
    with (
        tempfile.TemporaryDirectory(prefix="steptime-sides-") as folder,
        _postgres(Path(folder)) as postgres,
    ):
        asks: dict[str, Ask | None] = {"SQLite": _sqlite(table(), columns)}
        asks["PostgreSQL"] = _filled(postgres, table(), columns) if postgres else None
        for word, text in questions.items():
            query = from_url(text)
            for name, guide, statements in _statements(index, query, names, cells):
                base = _least(guide)
                row = f"{word:<10} {name:<12} {1000 * base:>8.1f}"
                for side, ask in asks.items():
                    told = _told(ask, statements[side]) if ask else None
                    row += f" {f'{1000 * told:,.1f} ({told / base:,.1f}×)' if told is not None else '–':>19}"
                yield row


def _statements(
    index: Index, query: Query, names: list[str], cells: bool
) -> list[tuple[str, Callable[[], Any], dict[str, tuple[str, list[Any]]]]]:
    """SQLite knows neither grouping sets nor deviations: it counts facet by facet, and sums."""
    test, values = sql.make_condition(query, query.conditions, cells=cells)
    groups, y = ", ".join(sql.quote(name) for name in query.groups), query.y
    n, least, most, total = (sql.quote(f"{y}_{part}") for part in ("n", "least", "most", "total"))
    parts = f"sum({n}), min({least}), max({most}), sum({total}) / sum({n})" if cells else (
        f'count("{y}"), min("{y}"), max("{y}"), avg("{y}"), sum("{y}" * "{y}")'
    )  # fmt: skip
    chart = f"SELECT {groups}, {parts} FROM runs WHERE {test} GROUP BY {groups}", values
    count = f"sum({n})" if cells else "count(*)"
    filtered = {key for key, _ in query.conditions}
    each, bound = [], list[Any]()
    for name in names:
        own, some = sql.make_condition(
            query, tuple(pair for pair in query.conditions if pair[0] != name), cells=cells
        )
        each.append(
            f"SELECT '{name}', CAST({sql.quote(name)} AS VARCHAR), {count} FROM runs WHERE {own} GROUP BY 2"
        )
        bound += some
    free = [name for name in names if name not in filtered]
    listed = ", ".join(sql.quote(name) for name in free)
    sets = ", ".join(f"({sql.quote(name)})" for name in free)
    sets = f"SELECT {listed}, {count} FROM runs WHERE {test} GROUP BY GROUPING SETS ({sets})"
    rest = [place for place, name in enumerate(names) if name in filtered]
    own_values = [
        v for p in rest for v in sql.make_condition(query, _but(query, names[p]), cells=cells)[1]
    ]
    split = [(sets, values), (" UNION ALL ".join(each[place] for place in rest), own_values)]
    together = (" UNION ALL ".join(each), bound)
    return [
        ("chart", lambda: index.points(query), {"SQLite": chart, "PostgreSQL": chart}),
        (
            "12 facets",
            lambda: index.facets(query, names),
            {"SQLite": together, "PostgreSQL": _both(split)},
        ),
    ]


def _but(query: Query, name: str) -> Any:
    return tuple(pair for pair in query.conditions if pair[0] != name)


def _both(split: list[tuple[str, list[Any]]]) -> tuple[str, list[Any]]:
    """Two statements as one text: the second may be empty."""
    (first, values), (second, more) = split
    return (f"{first};{second}", [*values, *more]) if second else (first, values)


def _least(ask: Callable[[], Any]) -> float:
    found = []
    for _ in range(5):
        began = time.process_time()
        ask()
        found.append(time.process_time() - began)
    return min(found)


def _told(ask: Ask, statement: tuple[str, list[Any]]) -> float:
    return min(ask(*statement)[0] for _ in range(3))


def _columns(index: Index, cells: bool, names: list[str]) -> dict[str, str]:
    """Only what the questions touch, with types: a narrow table is a gift to whoever stores rows."""
    parts = (
        [f"throughput_{part}" for part in ("n", "least", "most", "total")]
        if cells
        else ["throughput"]
    )
    words = dict.fromkeys([*names, *NARROW, "replica_batch", "status", "plausible", *parts])
    listed = ", ".join(sql.quote(name) for name in words)
    found = index.database.execute(
        f"SELECT {listed} FROM {'cells' if cells else 'runs'} LIMIT 0"
    ).description
    return {
        column[0]: "text" if str(column[1]) == "VARCHAR" else "double precision" for column in found
    }


def _rows(index: Index, cells: bool, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    listed = ", ".join(sql.quote(name) for name in columns)
    cursor = index.database.cursor().execute(f"SELECT {listed} FROM {'cells' if cells else 'runs'}")
    while some := cursor.fetchmany(10_000):
        yield from some


def _sqlite(rows: Iterator[tuple[Any, ...]], columns: dict[str, str]) -> Ask:
    database = sqlite3.connect(":memory:")
    database.execute(
        f"CREATE TABLE runs ({', '.join(f'{sql.quote(name)} {kind}' for name, kind in columns.items())})"
    )
    database.executemany(f"INSERT INTO runs VALUES ({', '.join('?' * len(columns))})", rows)
    database.execute(
        f"CREATE INDEX narrow ON runs ({', '.join(sql.quote(name) for name in NARROW)})"
    )
    database.execute("ANALYZE")

    def ask(text: str, values: list[Any]) -> tuple[float, list[tuple[Any, ...]]]:
        began = time.process_time()
        found = database.execute(text, values).fetchall()
        return time.process_time() - began, found

    return ask


def _filled(connection: Any, rows: Iterator[tuple[Any, ...]], columns: dict[str, str]) -> Ask:
    made = ", ".join(f"{sql.quote(name)} {kind}" for name, kind in columns.items())
    connection.execute(f"CREATE TABLE runs ({made})")
    with connection.cursor().copy("COPY runs FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    connection.execute(
        f"CREATE INDEX narrow ON runs ({', '.join(sql.quote(name) for name in NARROW)})"
    )
    connection.execute(
        "SET max_parallel_workers_per_gather = 0"
    )  # so that one process has all the CPU time
    connection.execute("VACUUM ANALYZE runs")
    (process,) = connection.execute("SELECT pg_backend_pid()").fetchone()

    def ask(text: str, values: list[Any]) -> tuple[float, list[tuple[Any, ...]]]:
        began, found, left = _ticks(process), [], list(values)
        for part in text.split(";"):
            count = part.count("?")
            found += connection.execute(part.replace("?", "%s"), left[:count]).fetchall()
            left = left[count:]
        return _ticks(process) - began, found

    return ask


def _ticks(process: int) -> float:
    """CPU seconds of another process, to the nanosecond where the kernel tells."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


@contextmanager
def _postgres(folder: Path) -> Iterator[Any]:
    """A server of our own, as quick as it can be: nothing must survive."""
    if not shutil.which("initdb") or not shutil.which("postgres"):
        yield None
        return
    import psycopg

    somebody: dict[str, Any] = {}
    if os.geteuid() == 0:  # it refuses to run as root
        user = pwd.getpwnam("postgres")
        somebody = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(folder, user.pw_uid, user.pw_gid)
    make = [
        "initdb",
        "-D",
        "data",
        "-U",
        "test",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
        "--no-instructions",
    ]
    subprocess.run(make, cwd=folder, check=True, stdout=subprocess.DEVNULL, **somebody)
    with (folder / "data" / "postgresql.conf").open("a") as file:
        file.write(f"listen_addresses=''\nunix_socket_directories='{folder}'\nfsync=off\n")
        file.write("shared_buffers=1GB\nwork_mem=256MB\n")
    process = subprocess.Popen(
        ["postgres", "-D", "data"], cwd=folder, stderr=subprocess.DEVNULL, **somebody
    )
    try:
        connection = None
        while connection is None and process.poll() is None:
            try:
                connection = psycopg.connect(
                    host=str(folder), user="test", dbname="postgres", autocommit=True
                )
            except psycopg.OperationalError:
                time.sleep(0.1)
        yield connection
    finally:
        process.send_signal(signal.SIGINT)  # at once: who is connected is not waited for
        process.wait(60)
