"""The one table of all commands, for terminals of any width.

No number and no word is ever broken. What all rows say alike stands once above them. Columns that
do not fit are left out in the order that they name, and a line says so. If that is not enough,
each row becomes a block of lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steptime.cli import output

# Between two columns: with Rich's three spaces, tables of results need 120 columns.
GAP = 2


@dataclass(frozen=True)
class Column:
    name: str
    # Numbers of different size are easier to compare this way.
    right: bool = False
    # Text of several words may continue below, in this width at least; 0: it stays on one line.
    least: int = 0
    # Left out of a narrow terminal, the largest first; 0: never.
    drop: int = 0
    # In the rows even if all of them say the same: what the table is about.
    stays: bool = False


# The texts of each column, a text for each row.
Cells = Mapping[Column, Sequence[str]]


def quantity(name: str, *, drop: int = 0) -> Column:
    """A column of measured or counted numbers."""
    return Column(name, right=True, drop=drop, stays=True)


def print_table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, shared: Iterable[str] = ()
) -> None:
    """Empty columns are left out. `shared` is what else holds for all rows."""
    cells: dict[Column, Sequence[str]] = {}
    for number, column in enumerate(columns):
        # A row must stay one: a name in a user's file may have line breaks.
        texts = [output.escape_controls(row[number].replace("\n", " ")) for row in rows]
        if any(texts):
            cells[column] = texts
    constants = _constant_columns(cells)
    facts = [*shared, *(f"{column.name} {cells[column][0]}" for column in constants)]
    if facts:
        output.echo(f"all: {' · '.join(facts)}")
    varying = {column: texts for column, texts in cells.items() if column not in constants}
    widths = fit(varying, output.width())
    if not widths:
        _print_blocks(varying)
        return
    _print_rows({column: varying[column] for column in widths}, widths)
    left_out = [column.name for column in varying if column not in widths]
    if left_out:
        names = ", ".join(left_out)
        output.echo(f"Not shown in {output.width()} columns: {names}; --json has them.")


def _constant_columns(cells: Cells) -> list[Column]:
    """What is the same in all of several rows."""
    constants = []
    for column, texts in cells.items():
        if len(texts) > 1 and len(set(texts)) == 1 and not column.stays:
            constants.append(column)
    # Rows that are all alike stay rows.
    return constants if len(constants) < len(cells) else constants[1:]


def fit(cells: Cells, available: int) -> dict[Column, int]:
    """The columns to show, with their widths; none if even the indispensable ones do not fit."""
    widths = {column: _least_width(column, texts) for column, texts in cells.items()}
    while (spare := available - _total_width(widths)) < 0:
        optional = [column for column in widths if column.drop]
        if not optional:
            return {}
        del widths[max(optional, key=lambda column: column.drop)]
    # Headings and texts that may continue below share the rest, those that need least of it first.
    needs = {column: _natural_width(column, cells[column]) - widths[column] for column in widths}
    growing = sorted((column for column in widths if needs[column]), key=lambda c: needs[c])
    for number, column in enumerate(growing):
        growth = min(needs[column], spare // (len(growing) - number))
        widths[column] += growth
        spare -= growth
    return widths


def _total_width(widths: Mapping[Column, int]) -> int:
    return sum(widths.values()) + GAP * max(0, len(widths) - 1)


def _natural_width(column: Column, texts: Sequence[str]) -> int:
    """Of its heading and its texts on one line each."""
    return max(_widest([column.name]), _widest(texts))


def _least_width(column: Column, texts: Sequence[str]) -> int:
    """A heading of several words takes several lines if there is no room."""
    heading = _widest(column.name.split())
    if not column.least:
        return max(heading, _widest(texts))
    longest = max(heading, _widest(" ".join(texts).split()))
    return min(max(heading, _widest(texts)), max(column.least, longest))


def _widest(texts: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, texts))


def _print_rows(cells: Cells, widths: Mapping[Column, int]) -> None:
    # Imported late: help and --json need no Rich and start faster without it.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column, width in widths.items():
        # The lines are broken already, so Rich must not break them.
        table.add_column(
            Text("\n".join(output.wrap(column.name, width))),
            justify="right" if column.right else "left",
            min_width=width,
            no_wrap=True,
        )
    for row in zip(*cells.values(), strict=True):
        lines = []
        for text, width in zip(row, widths.values(), strict=True):
            lines.append(Text("\n".join(output.wrap(text, width))))
        table.add_row(*lines)
    # Without colours also without bold: some terminals show it as a colour.
    console = Console(
        width=output.width(),
        highlight=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )
    with console.capture() as capture:
        console.print(table)
    # Rich pads every row to the width of the table.
    for line in capture.get().rstrip("\n").split("\n"):
        print(line.rstrip())


def _print_blocks(cells: Cells) -> None:
    """Every value on a line of its own: for terminals that are too narrow for rows."""
    margin = 2 + max(len(column.name) for column in cells) + GAP
    for number, row in enumerate(zip(*cells.values(), strict=True)):
        if number:
            output.echo()
        title, *texts = row
        output.echo(title)
        for column, text in zip(list(cells)[1:], texts, strict=True):
            if text:
                output.echo_labelled(f"  {column.name}", text, margin)
