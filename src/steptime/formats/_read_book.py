"""`python _read_book.py BYTES < BOOK`: print each sheet of a workbook as a line of JSON.

It runs on its own, without the package, so that it starts quickly and may take BYTES of memory."""

from __future__ import annotations

import io
import json
import resource
import sys
from typing import Any

from python_calamine import CalamineSheet, CalamineWorkbook

# A spreadsheet has no more. A damaged one may say so.
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14
# Of the answer: texts and empty cells can be repeated far beyond the size of the book.
MOST_BYTES = 64 << 20


def main() -> int:
    memory_bytes = int(sys.argv[1])
    data = sys.stdin.buffer.read()
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        print_sheets(data)
    except MemoryError:
        return 1
    except BaseException:
        # Damaged. Not only exceptions: a panic of the library is none.
        return 0
    return 0


def print_sheets(data: bytes) -> None:
    size = 0
    book = CalamineWorkbook.from_filelike(io.BytesIO(data))
    for name in book.sheet_names:
        line = json.dumps([name, list_rows(book.get_sheet_by_name(name))])
        size += len(line)
        if size > MOST_BYTES:
            raise MemoryError
        print(line, flush=True)


def list_rows(sheet: CalamineSheet) -> list[tuple[int, list[str]]]:
    """The number of each row that is not empty, and its cells up to the last that has a text."""
    if sheet.start is None or sheet.end is None:
        return []
    if sheet.end[0] >= MOST_ROWS or sheet.end[1] >= MOST_COLUMNS:
        raise ValueError("a cell lies outside of the sheet")
    first_row, first_column = sheet.start
    rows = []
    for number, values in enumerate(sheet.to_python(), first_row + 1):
        cells = [cell_text(value) for value in values]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            rows.append((number, [""] * first_column + cells))
    return rows


def cell_text(value: Any) -> str:
    """A whole number without a point. An error such as #DIV/0! is empty: its value is unknown."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
