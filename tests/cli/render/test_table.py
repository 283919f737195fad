"""Tables fit the terminal: no number is broken, and no column goes without a word."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from steptime.cli.render.table import Column, print_table, quantity

COLUMNS = (
    Column("id"),
    Column("case", least=12),
    quantity("time"),
    quantity("images/s", drop=1),
    Column("flags", drop=2),
)
ROWS = (
    ("0a1b2c3d", "lenet5 inference pytorch", "5.912 ms", "1,234,567", "drifts"),
    ("4e5f6a7b", "lenet5 training pytorch", "17.03 ms", "987,654", "noisy"),
)
Screen = Callable[[int], None]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    def resize(columns: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")

    return resize


def test_print_table_neither_folds_nor_pads_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([Column("name"), quantity("value")], [["[bold]x" * 200, "1"], ["y", "22"]])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(line == line.rstrip() for line in lines)
    assert lines[2].startswith("[bold]x" * 200) and lines[3].endswith(" 22")


@pytest.mark.parametrize("columns", [24, 40, 50, 60, 80, 120])
def test_print_table_breaks_no_number_and_no_name(
    columns: int, screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen(columns)
    print_table(COLUMNS, ROWS)
    text = capsys.readouterr().out
    assert all(len(line) <= columns for line in text.splitlines())
    for row in ROWS:
        assert row[0] in text and row[2] in text
        assert all(piece in text.split() for piece in row[1].split())


@pytest.mark.parametrize("columns", [24, 40, 50, 60, 80, 120])
def test_print_table_names_every_column_that_it_leaves_out(
    columns: int, screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen(columns)
    print_table(COLUMNS, ROWS)
    text = " ".join(capsys.readouterr().out.split())
    left_out = text.partition("Not shown in ")[2]
    for number, column in enumerate(COLUMNS):
        is_shown = ROWS[0][number].split()[0] in text
        assert is_shown != (column.name in left_out)


def test_print_table_leaves_out_the_largest_drop_first(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen(50)
    print_table(COLUMNS, ROWS)
    text = capsys.readouterr().out
    assert "1,234,567" in text and "Not shown in 50 columns: flags; --json has them." in text


def test_print_table_says_once_what_all_rows_say(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [Column("network"), Column("device"), quantity("steps")]
    print_table(columns, [["lenet5", "cpu", "3"], ["vgg16", "cpu", "3"]], shared=["fp32"])
    first, *lines = capsys.readouterr().out.splitlines()
    # A measured number stays in its row.
    assert first == "all: fp32 · device cpu" and lines[0].split() == ["network", "steps"]
