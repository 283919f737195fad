"""What is printed can be read by people and by programs."""

from __future__ import annotations

import json

import pytest

from steptime.cli import output


def test_json_has_no_infinity_and_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"µs": (1.5, float("inf"), float("nan"))})
    text = capsys.readouterr().out
    assert json.loads(text) == {"µs": [1.5, None, None]} and "µs" in text


def test_a_table_in_a_pipe_is_neither_folded_nor_padded(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["name", "value"], [["[bold]x" * 10, "1"], ["y", "22"]], right=["value"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(line == line.rstrip() for line in lines)
    assert lines[2].startswith("[bold]x[bold]x") and lines[3].endswith(" 22")


def test_notes_are_for_terminals_alone(capsys: pytest.CaptureFixture[str]) -> None:
    output.note("hello")
    assert capsys.readouterr() == ("", "")
