"""What a store holds, a line for each result, and what an id in it names."""

from __future__ import annotations

from typing import Any

from steptime.analysis.estimates import typical_time
from steptime.analysis.process import measured_processes
from steptime.cli.request import reading_store, warn_of_problems
from steptime.core.errors import SteptimeError
from steptime.core.record import Record
from steptime.store.readable import ReadableStore

LISTED = "`steptime list results` shows what is there."


def entries() -> list[dict[str, Any]]:
    """Oldest first, so that the newest stand above the prompt."""
    store = reading_store()
    found = [_entry(record) for record in store.records()]
    warn_of_problems(store)
    return found


def named(word: str, store: ReadableStore) -> list[Record]:
    """One result, or all of one session."""
    found = store.find(word)
    if not found:
        raise SteptimeError(
            f"Nothing in {store.path} has an id that begins or ends with {word!r}. {LISTED}"
        )
    if len({record.session for record in found}) > 1:
        names = ", ".join(
            f"{record.attempts[0].id[-8:]} ({record.case.label})" for record in found[:4]
        )
        raise SteptimeError(
            f"{word!r} names {len(found)} results; say which: {names}{' …' if len(found) > 4 else ''}."
        )
    return found


def _entry(record: Record) -> dict[str, Any]:
    measured = measured_processes(record.attempts)
    return {
        "id": record.attempts[0].id[-8:],
        "session": record.session[-8:],
        "started": record.attempts[0].started[:16].replace("T", " "),
        "case": record.case.label,
        "status": record.status,
        "processes": len(measured),
        "typical_step_seconds": typical_time(measured).value if measured else None,
    }
