"""Any list of equal entries as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steptime.cli.render.table import Column, print_table
from steptime.core.format import duration

# Columns of several words, and the least width in which they can be read.
LEAST_WIDTHS = {"title": 24, "case": 36, "values": 24, "meaning": 24, "networks": 24}
# Left out of a narrow terminal in this order, from the largest: `show ID` has them too.
DROPS = {"session": 3, "processes": 2, "started": 1}


def show_entries(entries: Sequence[dict[str, Any]]) -> None:
    """The first key names the entry."""
    keys = list(entries[0])
    columns = [_column(key, entries) for key in keys]
    rows = [[_text(key, entry[key]) for key in keys] for entry in entries]
    print_table(columns, rows)


def _column(key: str, entries: Sequence[dict[str, Any]]) -> Column:
    """The unit at the end of a key moves from the heading to the values."""
    return Column(
        key.removesuffix("_seconds").replace("_", " "),
        right=not any(isinstance(entry[key], str) for entry in entries),
        least=LEAST_WIDTHS.get(key, 0),
        drop=DROPS.get(key, 0),
        stays=key == next(iter(entries[0])),
    )


def _text(key: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return duration(value) if key.endswith("_seconds") else f"{value:,}"
