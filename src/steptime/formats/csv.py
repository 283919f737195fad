"""A table of results that says its units: a column is NAME, or NAME [UNIT] where it holds numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from steptime.formats import Found, Original
from steptime.formats._parse import number, table, whole
from steptime.formats._writer import COUNT, Page, columns, own_run, unit

TITLE = "Tables of results with units (CSV)"
FIRST = ("id", "started", "model")


def recognises(name: str, head: bytes) -> bool:
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    return first.startswith(",".join(FIRST).encode()) and b" [" in first


def read(file: Original) -> Found:
    for line, cells in table(file.text):
        numbers = {name.partition(" [")[0]: number(cells[name]) for name in cells if " [" in name}
        yield own_run(file, f"line {line}", {**cells, **numbers})


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page]:
    """Everything that the catalogue has a name for. Rates of all devices and of each are columns of their own, in the
    unit that the column `unit` names."""
    if not rows:
        return
    text, names = io.StringIO(), [*FIRST, *(name for name in columns(rows) if name not in FIRST)]
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(f"{name} [{of}]" if (of := unit(name)) else name for name in names)
    lines.writerows([_cell(name, row.get(name)) for name in names] for row in rows)
    yield Page("results.csv", text.getvalue().encode(), tuple(row["id"] for row in rows))


def _cell(name: str, value: Any) -> Any:
    """The index keeps every number as a float; a count is written as one."""
    count = whole(value) if unit(name) == COUNT else None
    return value if count is None else count
