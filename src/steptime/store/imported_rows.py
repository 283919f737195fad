"""Read imported rows back from the file that holds them. Changes nothing on the disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steptime.core.foreign import ForeignRun
from steptime.core.record_schema import IMPORTED_ROW
from steptime.store.files import read_bytes


class InvalidRow(ValueError):
    """JSON, but not an imported row."""


def read_rows(file: Path, problems: list[str]) -> Iterator[ForeignRun]:
    try:
        lines = read_bytes(file).split(b"\n")
    except OSError as problem:
        problems.append(f"{file}: not readable ({problem.strerror}); it is left as it is.")
        return
    for number, line in enumerate(lines, 1):
        if line:
            yield from read_line(file, number, line, problems)


def read_line(file: Path, number: int, line: bytes, problems: list[str]) -> Iterator[ForeignRun]:
    """Yield the row, or nothing if the line is damaged."""
    try:
        run = parse_row(line)
    except (ValueError, RecursionError) as problem:
        reason = f" ({problem})" if isinstance(problem, InvalidRow) else ""
        problems.append(
            f"{file}: line {number} is damaged{reason} and was skipped; "
            "import the original again to repair it."
        )
        return
    yield run


def parse_row(text: bytes | str) -> ForeignRun:
    """Raises ValueError or RecursionError if this is no imported row."""
    values: Any = json.loads(text)
    if problem := IMPORTED_ROW.problem(values, "row"):
        raise InvalidRow(problem)
    return ForeignRun.from_dict(values)
