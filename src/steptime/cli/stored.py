"""Stored results: a line for each, and the one that an id names."""

from __future__ import annotations

from typing import Any

from steptime.analysis.estimates import typical_time
from steptime.analysis.process import measured_processes
from steptime.cli.request import readable_store, warn_of_problems
from steptime.core.errors import SteptimeError
from steptime.core.record import Record
from steptime.store.readable import ReadableStore

# Enough to choose from; the id of a busy second may match hundreds.
MOST_NAMES = 4


def list_results() -> list[dict[str, Any]]:
    """Oldest first, so that the newest stand just above the prompt."""
    store = readable_store()
    entries = [_entry(record) for record in store.records()]
    warn_of_problems(store)
    return entries


def find_records(identifier: str, store: ReadableStore) -> list[Record]:
    """One result, or all results of one session."""
    records = store.find(identifier)
    if not records:
        raise SteptimeError(
            f"No id in {store.path} begins or ends with {identifier!r}. "
            "`steptime list results` shows the ids."
        )
    # Several results of one session are a session; of several sessions, an ambiguity.
    if len({record.session for record in records}) > 1:
        names = [f"{short_id(record)} ({record.case.label})" for record in records[:MOST_NAMES]]
        more = " …" if len(records) > MOST_NAMES else ""
        raise SteptimeError(
            f"{identifier!r} names {len(records)} results; choose one: {', '.join(names)}{more}."
        )
    return records


def short_id(record: Record) -> str:
    """The end of an id is its random part: enough to name a result."""
    return record.attempts[0].id[-8:]


def _entry(record: Record) -> dict[str, Any]:
    measured = measured_processes(record.attempts)
    return {
        "id": short_id(record),
        "session": record.session[-8:],
        "started": record.attempts[0].started[:16].replace("T", " "),
        # Workers of a comparison take turns: their result is not that of `run`.
        "case": record.case.label + (" (by compare)" if record.last.pair else ""),
        "status": record.status,
        "processes": len(measured),
        "typical_step_seconds": typical_time(measured).value if measured else None,
    }
