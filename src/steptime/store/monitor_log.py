"""What a monitor wrote beside a journal, line by line, turned into columns. Nothing in it is worth losing a result."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_ROWS = 2000
"""Counters only grow, so a long series is thinned out without losing what was used in all."""


def log_path(journal: Path) -> Path:
    return journal.with_suffix(".monitor")


def read_series(journal: Path) -> dict[str, Any] | None:
    """None: nobody watched."""
    try:
        lines = log_path(journal).read_text(errors="replace").splitlines()
    except OSError:
        return None
    objects = [value for line in lines if (value := _object(line)) is not None]
    if not objects or "interval_seconds" not in objects[0]:
        return {
            "problem": f"The monitor told nothing. {lines[-1] if lines else ''}".strip(),
            "columns": {},
        }
    head, rows = objects[0], [row for row in objects[1:] if "seconds" in row]
    rows = [*rows[: -1 : max(1, -(-len(rows) // MOST_ROWS))], *rows[-1:]]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return {**head, "cost": _cost(rows), "columns": columns}


def _cost(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Its own CPU time, start-up included, and as a share of one CPU while it watched."""
    if not rows:
        return {}
    used, seconds = rows[-1].get("own_cpu_seconds", 0.0), rows[-1]["seconds"]
    watching = used - rows[0].get("own_cpu_seconds", 0.0)
    return {"cpu_seconds": used, "share": watching / seconds if seconds else 0.0}


def _object(line: str) -> dict[str, Any] | None:
    """None for what is no object: a torn last line, or the end of a traceback."""
    with suppress(ValueError):
        value = json.loads(line)
        return value if isinstance(value, dict) else None
    return None
