"""Sends a folder's attempts and imported rows to PostgreSQL. Sending twice changes nothing, here or there."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from steptime.core.foreign import ForeignRun
from steptime.store import journals, parts
from steptime.store.folder import FolderStore
from steptime.store.imports import foreign_runs
from steptime.store.journals import Found
from steptime.store.postgres import FORMAT, check_format, connected, named

if TYPE_CHECKING:
    import psycopg

BATCH_CHARACTERS, BATCH_ROWS = 10_000_000, 1000
# `journal` and `row` are the truth, to the last digit. `record` is there to be asked: jsonb knows no NaN and no order.
TABLES = f"""
CREATE TABLE IF NOT EXISTS steptime_store (format integer NOT NULL);
INSERT INTO steptime_store SELECT {FORMAT} WHERE NOT EXISTS (SELECT FROM steptime_store);
CREATE TABLE IF NOT EXISTS runs (
    id uuid PRIMARY KEY, session text NOT NULL, plan text NOT NULL, started timestamptz NOT NULL,
    ended timestamptz NOT NULL, task text NOT NULL, status text NOT NULL, case_key text NOT NULL,
    workload text NOT NULL, framework text NOT NULL, phase text NOT NULL, device text NOT NULL,
    precision text NOT NULL, batch_size integer NOT NULL, machine text NOT NULL,
    record jsonb NOT NULL, journal text NOT NULL
);
CREATE TABLE IF NOT EXISTS foreign_runs (
    id uuid PRIMARY KEY, source text NOT NULL, original text NOT NULL, started timestamptz,
    record jsonb NOT NULL, row text NOT NULL
);
"""
LOCK = 0x57E971E  # any number: two who make the tables at once would trip over each other


@dataclass
class Pushed:
    runs: int = 0  # sent now
    foreign_runs: int = 0
    present: int = 0  # there before
    left: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def push(store: FolderStore, address: str) -> Pushed:
    """Sends what the database lacks. The folder is not changed: what could not be sent is sent next time."""
    done = Pushed()
    with connected(address) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        connection.execute(TABLES.encode())
        check_format(connection, named(address))
        connection.commit()
        known = {str(row[0]) for row in connection.execute("SELECT id FROM runs")}
        for batch in journals.batches(_unsent(store, known, done), BATCH_CHARACTERS):
            done.runs += _insert(connection, "runs", [row for found in batch for row in _rows(found, done.problems)])
        known = {str(row[0]) for row in connection.execute("SELECT id FROM foreign_runs")}
        rows = (_foreign_row(run) for run in foreign_runs(store.path, done.problems) if _is_new(run.id, known, done))
        while some := list(islice(rows, BATCH_ROWS)):
            done.foreign_runs += _insert(connection, "foreign_runs", some)
    return done


def _unsent(store: FolderStore, known: set[str], done: Pushed) -> Iterator[Found]:
    """Journals before parts: a compactor moves them from there to here."""
    for found in journals.found(journals.paths(store.path)):
        if found.state != journals.ENDED:
            done.left[found.state] += 1
            done.problems += [found.problem] if found.problem else []
        elif _is_new(found.id, known, done):
            yield found
    for path in store.parts.paths():
        try:
            wanted = [identifier for identifier in parts.ids(path) if _is_new(identifier, known, done)]
            yield from parts.found(path, parts.texts(path, only=wanted), done.problems)
        except parts.DamagedPart as problem:
            done.problems.append(str(problem))


def _is_new(identifier: str, known: set[str], done: Pushed) -> bool:
    done.present += identifier in known
    return identifier not in known


def _rows(found: Found, problems: list[str]) -> Iterator[dict[str, Any]]:
    assert found.attempt is not None
    try:
        UUID(found.id), datetime.fromisoformat(found.attempt.started), datetime.fromisoformat(found.attempt.ended)
    except ValueError as problem:
        problems.append(f"{found.path}: not sent ({problem}); it is left as it is.")
        return
    columns = {name: column(found.attempt) for name, column in parts.COLUMNS.items()}
    yield {**columns, "record": _record(found.text), "journal": found.text}


def _record(text: str) -> str:
    """A journal as one object; its samples stay in the journal."""
    lines = [json.loads(line) for line in text.split("\n") if line]
    merged = {name: value for line in lines if line["line"] != "sample" for name, value in line.items()}
    return json.dumps(_askable({name: value for name, value in merged.items() if name != "line"}))


def _foreign_row(run: ForeignRun) -> dict[str, Any]:
    text = json.dumps(run.to_dict(), ensure_ascii=False)
    started = None
    with contextlib.suppress(ValueError):
        started = datetime.fromisoformat(run.started)
    names = {"id": run.id, "source": run.source, "original": run.original, "started": started}
    return {**names, "record": json.dumps(_askable(run.to_dict())), "row": text}


def _askable(value: Any) -> Any:
    """As jsonb takes it: no infinity, no character zero, no half characters."""
    if isinstance(value, dict):
        return {_askable(str(name)): _askable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_askable(inner) for inner in value]
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _insert(connection: psycopg.Connection[Any], table: str, rows: list[dict[str, Any]]) -> int:
    """In the order of their ids, so that two who send the same do not wait for each other in a circle."""
    if not rows:
        return 0
    names, values = ", ".join(rows[0]), ", ".join(f"%({name})s" for name in rows[0])
    with connection.transaction(), connection.cursor() as cursor:
        question = f"INSERT INTO {table} ({names}) VALUES ({values}) ON CONFLICT DO NOTHING"
        cursor.executemany(question.encode(), sorted(rows, key=lambda row: str(row["id"])))
        return int(cursor.rowcount)
