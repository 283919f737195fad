"""Any list of equal entries as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steptime.cli import output
from steptime.core.format import duration


def show_entries(entries: Sequence[dict[str, Any]]) -> None:
    """The unit at the end of a key moves from the heading to the values."""
    keys = list(entries[0])
    heads = [key.removesuffix("_seconds").replace("_", " ") for key in keys]
    right = []
    for key, head in zip(keys, heads, strict=True):
        if any(not isinstance(entry[key], str) for entry in entries):
            right.append(head)
    rows = [[_text(key, entry[key]) for key in keys] for entry in entries]
    output.print_table(heads, rows, right=right)


def _text(key: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return duration(value) if key.endswith("_seconds") else f"{value:,}"
