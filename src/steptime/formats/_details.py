"""What our own tables say about a result beyond the catalogue: flags, warnings, what was measured.

They follow from all samples of a record, so an export computes them and the index has none."""

from __future__ import annotations

from typing import Any

from steptime.analysis.result import result
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.index.rows import hardware, quarantine_reason

# In the order of the columns.
DETAILS = ("failure", "quarantine", "flags", "warnings", "interval", "processes", "steps")
COUNTS = ("processes", "steps")
# Sources that have these columns themselves.
OWN_TABLES = ("csv", "parquet")
# Between warnings; an evidence may hold commas.
SEPARATOR = "; "


def details(run: Record | ForeignRun) -> dict[str, Any]:
    """The details by name, with `hardware` or `more` for other tools' formats."""
    if isinstance(run, ForeignRun):
        return _imported(run)
    if not run.measurements:
        failure = run.failures[-1].reason if run.failures else ""
        return {"hardware": hardware(run), "failure": failure}
    numbers = result(run)
    warnings = [f"{flag.name} ({flag.level}): {flag.evidence}" for flag in numbers.flags]
    # A flag of two levels is still one name.
    names = dict.fromkeys(flag.name for flag in numbers.flags)
    return {
        "hardware": hardware(run),
        "quarantine": quarantine_reason(numbers),
        "flags": " ".join(names),
        "warnings": SEPARATOR.join(warnings),
        "interval": numbers.times.typical_time_seconds.claim,
        "processes": numbers.spread.processes,
        "steps": numbers.spread.steps,
    }


def _imported(run: ForeignRun) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if run.source in OWN_TABLES:
        values = {name: run.more[name] for name in DETAILS if name in run.more}
    values["more"] = run.more
    values["failure"] = run.failure
    values["quarantine"] = run.quarantine
    values["warnings"] = SEPARATOR.join(run.defects)
    return values
