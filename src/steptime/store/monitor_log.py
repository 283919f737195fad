"""What a monitor wrote beside a journal, line by line, turned into columns.

A problem in this log must never cost a result."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from steptime.store.files import read_text

# Counters only grow, so a long series is thinned out without losing the totals.
MOST_ROWS = 2000


def log_path(journal: Path) -> Path:
    return journal.with_suffix(".monitor")


def read_series(journal: Path) -> dict[str, Any] | None:
    """None: no monitor ran."""
    try:
        lines = read_text(log_path(journal), errors="replace").splitlines()
    except OSError:
        return None
    values = [_parse_object(line) for line in lines]
    objects = [value for value in values if value is not None]
    if not objects or "interval_seconds" not in objects[0]:
        last_line = lines[-1] if lines else ""
        sentence = f"The monitor wrote no readings. {last_line}".strip()
        return {"problem": sentence, "columns": {}}
    rows = _thin_out([row for row in objects[1:] if "seconds" in row])
    return {**objects[0], "cost": _cost(rows), "columns": _columns(rows)}


def _thin_out(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every n-th row, and the last one, which has the totals."""
    stride = max(1, -(-len(rows) // MOST_ROWS))
    return [*rows[:-1:stride], *rows[-1:]]


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name in row:
            columns.setdefault(name, [])
    for name, values in columns.items():
        values.extend(row.get(name) for row in rows)
    return columns


def _cost(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The monitor's own CPU time, start-up included, and its share of one CPU while it ran."""
    if not rows:
        return {}
    used = rows[-1].get("own_cpu_seconds", 0.0)
    seconds = rows[-1]["seconds"]
    used_while_watching = used - rows[0].get("own_cpu_seconds", 0.0)
    share = used_while_watching / seconds if seconds else 0.0
    return {"cpu_seconds": used, "share": share}


def _parse_object(line: str) -> dict[str, Any] | None:
    """None for anything else: a torn last line, or the end of a traceback."""
    with suppress(ValueError, RecursionError):
        value = json.loads(line)
        return value if isinstance(value, dict) else None
    return None
