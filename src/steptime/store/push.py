"""Sends what a folder holds to PostgreSQL. Sending twice changes nothing, here or there."""

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
from steptime.store.blobs import Blobs
from steptime.store.folder import FolderStore
from steptime.store.imports import foreign_runs
from steptime.store.journals import StoredJournal
from steptime.store.postgres import connected, named
from steptime.store.postgres_tables import prepare

if TYPE_CHECKING:
    import psycopg

BATCH_CHARACTERS, BATCH_ROWS = 10_000_000, 1000
MOST_BYTES = 256 << 20  # of a blob: the database holds it in memory while it is sent


@dataclass
class Pushed:
    runs: int = 0  # sent now
    foreign_runs: int = 0
    machines: int = 0
    blobs: int = 0
    present: int = 0  # runs and rows that were there before
    left: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def push(store: FolderStore, address: str) -> Pushed:
    """Sends what the database lacks. The folder is not changed: what could not be sent is sent next time."""
    done = Pushed()
    with connected(address) as connection:
        prepare(connection, named(address))
        known = _known(connection, "SELECT id::text FROM runs")
        for batch in journals.batches(_unsent(store, known, done), BATCH_CHARACTERS):
            done.runs += _insert(
                connection, "runs", [row for found in batch for row in _rows(found, done.problems)]
            )
        known = _known(connection, "SELECT id::text FROM foreign_runs")
        rows = (
            _foreign_row(run)
            for run in foreign_runs(store.path, done.problems)
            if _is_new(run.id, known, done)
        )
        while some := list(islice(rows, BATCH_ROWS)):
            done.foreign_runs += _insert(connection, "foreign_runs", some)
        _push_files(connection, store, done)
    return done


def _push_files(connection: psycopg.Connection[Any], store: FolderStore, done: Pushed) -> None:
    """Machines, and the originals and traces that prove rows and runs."""
    known = _known(connection, "SELECT fingerprint FROM machines")
    machines = [one for one in store.machines() if one["fingerprint"] not in known]
    rows = [{"fingerprint": one["fingerprint"], "content": json.dumps(one)} for one in machines]
    done.machines += _insert(connection, "machines", rows, key="fingerprint")
    known = _known(connection, "SELECT sha256 FROM blobs")
    blobs = Blobs(store.path)
    for name in blobs.names():
        if name in known:
            continue
        if blobs.path(name).stat().st_size > MOST_BYTES:
            done.left["too_large"] += 1
        elif (content := store.blob(name)) is None:
            done.problems.append(
                f"{blobs.path(name)}: its content is not what its name says; it is not sent."
            )
        else:
            done.blobs += _insert(
                connection, "blobs", [{"sha256": name, "content": content}], key="sha256"
            )


def _known(connection: psycopg.Connection[Any], question: str) -> set[str]:
    return {row[0] for row in connection.execute(question.encode())}


def _unsent(store: FolderStore, known: set[str], done: Pushed) -> Iterator[StoredJournal]:
    """Journals before parts: a compactor moves them from there to here."""
    for found in journals.scan(journals.paths(store.path)):
        if found.state != journals.ENDED:
            done.left[found.state] += 1
            done.problems += [found.problem] if found.problem else []
        elif _is_new(found.id, known, done):
            yield found
    for path in store.parts.paths():
        try:
            wanted = [
                identifier for identifier in parts.ids(path) if _is_new(identifier, known, done)
            ]
            yield from parts.stored_journals(path, parts.texts(path, only=wanted), done.problems)
        except parts.DamagedPart as problem:
            done.problems.append(str(problem))


def _is_new(identifier: str, known: set[str], done: Pushed) -> bool:
    done.present += identifier in known
    return identifier not in known


def _rows(found: StoredJournal, problems: list[str]) -> Iterator[dict[str, Any]]:
    assert found.attempt is not None
    try:
        (
            UUID(found.id),
            datetime.fromisoformat(found.attempt.started),
            datetime.fromisoformat(found.attempt.ended),
        )
    except ValueError as problem:
        problems.append(f"{found.path}: not sent ({problem}); it is left as it is.")
        return
    columns = {name: column(found.attempt) for name, column in parts.COLUMNS.items()}
    yield {**columns, "record": _record(found.text), "journal": found.text}


def _record(text: str) -> str:
    """A journal as one object; its samples stay in the journal."""
    lines = [json.loads(line) for line in text.split("\n") if line]
    merged = {
        name: value for line in lines if line["line"] != "sample" for name, value in line.items()
    }
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


def _insert(
    connection: psycopg.Connection[Any], table: str, rows: list[dict[str, Any]], key: str = "id"
) -> int:
    """In the order of their ids, so that two who send the same do not wait for each other in a circle."""
    if not rows:
        return 0
    names, values = ", ".join(rows[0]), ", ".join(f"%({name})s" for name in rows[0])
    with connection.transaction(), connection.cursor() as cursor:
        question = f"INSERT INTO {table} ({names}) VALUES ({values}) ON CONFLICT DO NOTHING"
        cursor.executemany(question.encode(), sorted(rows, key=lambda row: str(row[key])))
        return int(cursor.rowcount)
