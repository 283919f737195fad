"""Send what a folder holds to PostgreSQL. Sending twice changes nothing, here or there."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from steptime.core.foreign import ForeignRun
from steptime.core.secrets import redact, redact_environment, secret_values
from steptime.store import checksums, journals, parts
from steptime.store.blobs import MISNAMED, Blobs
from steptime.store.folder import FolderStore
from steptime.store.imports import foreign_runs
from steptime.store.journals import StoredJournal
from steptime.store.postgres import connect, public_address
from steptime.store.postgres_tables import prepare

if TYPE_CHECKING:
    import psycopg

# Of journals, and rows of imports, in one transaction.
BATCH_CHARACTERS = 10_000_000
BATCH_ROWS = 1000
# Of a blob: the database holds it in memory while it is sent.
MOST_BYTES = 256 << 20

Row = dict[str, Any]


@dataclass
class PushReport:
    # Sent now.
    runs: int = 0
    foreign_runs: int = 0
    machines: int = 0
    blobs: int = 0
    # Runs and imported rows that the database had before.
    present: int = 0
    # Not sent, by the reason.
    left: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def push(store: FolderStore, address: str) -> PushReport:
    """Send what the database lacks. The folder is not changed."""
    report = PushReport()
    with connect(address) as connection:
        prepare(connection, public_address(address))
        _push_runs(connection, store, report)
        _push_foreign_runs(connection, store, report)
        _push_machines(connection, store, report)
        _push_blobs(connection, store, report)
    return report


def _push_runs(connection: psycopg.Connection[Any], store: FolderStore, report: PushReport) -> None:
    known_ids = _select_names(connection, "SELECT id::text FROM runs")
    for batch in journals.batches(_unsent(store, known_ids, report), BATCH_CHARACTERS):
        rows = [_run_row(journal) for journal in batch if _is_sendable(journal, report)]
        report.runs += _insert(connection, "runs", rows, report)


def _push_foreign_runs(
    connection: psycopg.Connection[Any], store: FolderStore, report: PushReport
) -> None:
    known_ids = _select_names(connection, "SELECT id::text FROM foreign_runs")
    runs = foreign_runs(store.path, report.problems)
    rows = (_foreign_row(run) for run in runs if _is_new(run.id, known_ids, report))
    while batch := list(islice(rows, BATCH_ROWS)):
        report.foreign_runs += _insert(connection, "foreign_runs", batch, report)


def _push_machines(
    connection: psycopg.Connection[Any], store: FolderStore, report: PushReport
) -> None:
    known_ids = _select_names(connection, "SELECT fingerprint FROM machines")
    rows = []
    for machine in store.machines():
        fingerprint = machine["fingerprint"]
        if fingerprint not in known_ids:
            rows.append({"fingerprint": fingerprint, "content": json.dumps(machine)})
    report.machines += _insert(connection, "machines", rows, report, key="fingerprint")


def _push_blobs(
    connection: psycopg.Connection[Any], store: FolderStore, report: PushReport
) -> None:
    """The originals and traces that prove rows and runs."""
    known_ids = _select_names(connection, "SELECT sha256 FROM blobs")
    blobs = Blobs(store.path)
    for name in blobs.names():
        if name in known_ids:
            continue
        path = blobs.path(name)
        if path.stat().st_size > MOST_BYTES:
            report.left["too_large"] += 1
            continue
        content = store.blob(name)
        if content is None:
            report.problems.append(f"{path}: {MISNAMED}; it is not sent.")
            continue
        row = {"sha256": name, "content": content}
        report.blobs += _insert(connection, "blobs", [row], report, key="sha256")


def _select_names(connection: psycopg.Connection[Any], query: str) -> set[str]:
    return {row[0] for row in connection.execute(query.encode())}


def _unsent(store: FolderStore, known_ids: set[str], report: PushReport) -> Iterator[StoredJournal]:
    """Journals before parts, because a compactor moves them from there to here."""
    for journal in journals.scan(journals.paths(store.path)):
        if journal.state != journals.ENDED:
            report.left[journal.state] += 1
            if journal.problem:
                report.problems.append(journal.problem)
        elif _is_new(journal.id, known_ids, report):
            yield journal
    for path in store.parts.paths():
        try:
            new_ids = [name for name in parts.ids(path) if _is_new(name, known_ids, report)]
            texts = parts.texts(path, only=new_ids)
            yield from parts.stored_journals(path, texts, report.problems)
        except parts.DamagedPart as problem:
            report.problems.append(str(problem))


def _is_new(identifier: str, known_ids: set[str], report: PushReport) -> bool:
    if identifier in known_ids:
        report.present += 1
        return False
    return True


def _is_sendable(journal: StoredJournal, report: PushReport) -> bool:
    """The database takes ids and times only in their one spelling."""
    assert journal.attempt is not None
    try:
        UUID(journal.id)
        datetime.fromisoformat(journal.attempt.started)
        datetime.fromisoformat(journal.attempt.ended)
        if "\0" in journal.text:
            raise ValueError("its text has a character zero")
    except ValueError as problem:
        report.problems.append(f"{journal.path}: not sent ({problem}); it is left as it is.")
        return False
    return True


def _run_row(journal: StoredJournal) -> Row:
    assert journal.attempt is not None
    row = {name: column(journal.attempt) for name, column in parts.COLUMNS.items()}
    text = _redact_journal(journal.text)
    row["record"] = _record(text)
    row["journal"] = text
    return row


def _redact_journal(text: str) -> str:
    """Older versions stored secrets. A line without any keeps its text."""
    secrets = secret_values(os.environ)
    lines = text.split("\n")
    is_changed = False
    for number, line in enumerate(lines):
        values = json.loads(line) if line else {}
        if values.get("line") in (None, "sample"):
            continue
        redacted = {
            name: value if name == "case" else redact(value, secrets)
            for name, value in values.items()
        }
        if "environment" in values:
            redacted["environment"] = redact_environment(values["environment"], secrets)
        if redacted != values:
            lines[number] = json.dumps(redacted, separators=(",", ":"), ensure_ascii=False)
            is_changed = True
    if not is_changed:
        return text
    sealed = checksums.seal_again(line.encode() for line in lines)
    return b"\n".join(sealed).decode()


def _record(text: str) -> str:
    """A journal as one JSON object. Its samples are only in the journal's text."""
    merged: Row = {}
    for line in text.split("\n"):
        values = json.loads(line) if line else {}
        if values.get("line") != "sample":
            merged.update(values)
        # What follows is not part of the attempt, whatever it is.
        if values.get("line") == "end":
            break
    for name in ("line", "checksum"):
        merged.pop(name, None)
    return json.dumps(_to_jsonb(merged))


def _foreign_row(run: ForeignRun) -> Row:
    values = run.to_dict()
    started = None
    with contextlib.suppress(ValueError):
        started = datetime.fromisoformat(run.started)
    return {
        "id": run.id,
        "source": run.source,
        "original": run.original,
        "started": started,
        "record": json.dumps(_to_jsonb(values)),
        "row": json.dumps(values, ensure_ascii=False),
    }


def _to_jsonb(value: Any) -> Any:
    """Replace what jsonb refuses: infinity, the character zero, half of a surrogate pair."""
    if isinstance(value, dict):
        return {_to_jsonb(str(name)): _to_jsonb(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_to_jsonb(inner) for inner in value]
    if isinstance(value, str):
        text = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        return text.encode(errors="replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _insert(
    connection: psycopg.Connection[Any],
    table: str,
    rows: list[Row],
    report: PushReport,
    key: str = "id",
) -> int:
    """Insert in the order of the keys, so that two senders of the same rows cannot deadlock.

    What arrived is kept, whatever comes later. If the database refuses some rows, the others are
    sent one by one."""
    if not rows:
        return 0
    ordered = sorted(rows, key=lambda row: str(row[key]))
    refusals = _refusals()
    try:
        return _insert_all(connection, table, ordered)
    except refusals:
        connection.rollback()
    count = 0
    for row in ordered:
        try:
            count += _insert_all(connection, table, [row])
        except refusals as problem:
            connection.rollback()
            answer = " ".join(str(problem).split())[:300]
            report.problems.append(f"{table} {row[key]}: not sent, the database refuses: {answer}")
    return count


def _refusals() -> tuple[type[Exception], ...]:
    """Errors that are about the values of a row, and not about the connection or the table."""
    import psycopg

    limit = psycopg.errors.ProgramLimitExceeded
    return (psycopg.DataError, psycopg.IntegrityError, limit, UnicodeError)


def _insert_all(connection: psycopg.Connection[Any], table: str, rows: list[Row]) -> int:
    names = ", ".join(rows[0])
    values = ", ".join(f"%({name})s" for name in rows[0])
    query = f"INSERT INTO {table} ({names}) VALUES ({values}) ON CONFLICT DO NOTHING"
    with connection.cursor() as cursor:
        cursor.executemany(query.encode(), rows)
        count = int(cursor.rowcount)
    connection.commit()
    return count
