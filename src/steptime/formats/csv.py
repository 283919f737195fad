"""A table of results with units: a column is NAME, or NAME [UNIT] if it holds numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from steptime.formats import Original, Rows
from steptime.formats._parse import integer, number, table_rows
from steptime.formats._writer import COUNT, Page, columns, row_from_table, unit

TITLE = "Tables of results with units (CSV)"
# Every table begins with these columns, by which it is recognised.
FIRST = ("id", "started", "model")


def recognises(name: str, head: bytes) -> bool:
    first_line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    return first_line.startswith(",".join(FIRST).encode()) and b" [" in first_line


def read(file: Original) -> Rows:
    for line, cells in table_rows(file.text):
        values: dict[str, Any] = dict(cells)
        for name, cell in cells.items():
            if " [" in name:
                values[name.partition(" [")[0]] = number(cell)
        yield row_from_table(file, f"line {line}", values)


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page]:
    """The same columns whatever the rows hold.

    Rates of all devices and of each are columns of their own, in the unit of column `unit`."""
    if not rows:
        return
    text = io.StringIO()
    names = [*FIRST, *(name for name in columns() if name not in FIRST)]
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([_column_title(name) for name in names])
    for row in rows:
        lines.writerow([_cell(name, row.get(name)) for name in names])
    yield Page("results.csv", text.getvalue().encode(), tuple(row["id"] for row in rows))


def _column_title(name: str) -> str:
    return f"{name} [{unit(name)}]" if unit(name) else name


def _cell(name: str, value: Any) -> Any:
    """The index holds every number as a float; a count is written as an integer."""
    count = integer(value) if unit(name) == COUNT else None
    return value if count is None else count
