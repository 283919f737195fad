"""What a store holds, a line for each result: where to find the ids that `compare` takes."""

from __future__ import annotations

from typing import Any

from steptime.analysis.process import processes
from steptime.analysis.result import typical_time
from steptime.cli.request import reading_store, warn_of_problems
from steptime.core.case import Case
from steptime.core.record import Record


def entries() -> list[dict[str, Any]]:
    """Oldest first, so that the newest stand above the prompt."""
    store = reading_store()
    found = [_entry(record) for record in store.records()]
    warn_of_problems(store)
    return found


def _entry(record: Record) -> dict[str, Any]:
    measured = processes(record.attempts)
    return {
        "id": record.attempts[0].id[-8:],
        "session": record.session[-8:],
        "started": record.attempts[0].started[:16].replace("T", " "),
        "case": _words(record.case),
        "status": record.status,
        "processes": len(measured),
        "typical_step_seconds": typical_time(measured).value if measured else None,
    }


def _words(case: Case) -> str:
    """The label, and what it leaves out where that is not as usual."""
    usual, label = Case(workload=case.workload).to_dict(), case.label
    changed = {name: value for name, value in case.to_dict().items() if value != usual[name]}
    return " ".join([label, *(f"{name}={value}" for name, value in changed.items() if str(value) not in label)])
