"""What is printed can be read by people and by programs."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

from steptime.cli import output
from steptime.cli.render.table import Column, print_table
from steptime.core.errors import SteptimeError


def test_print_json_has_no_infinity_and_keeps_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.print_json({"µs": (1.5, float("inf"), float("nan"))})
    text = capsys.readouterr().out
    assert json.loads(text) == {"µs": [1.5, None, None]} and "µs" in text


def test_note_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.note("hello")
    assert capsys.readouterr() == ("", "")


def test_control_characters_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output.echo("red \x1b[31m\x07")
    print_table([Column("title")], [["red \x1b[31m"]])
    text = capsys.readouterr().out
    assert text.startswith("red \\x1b[31m\\x07\n") and "\x1b" not in text


def test_missing_characters_are_replaced() -> None:
    assert "2 × 3 µs ±1 … ∞".encode("ascii", output.PLAIN) == b"2 x 3 us +-1 ... ?"


def test_write_file_keeps_the_old_file_if_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("earlier")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(SteptimeError, match=r"report\.html cannot be written: File too large"):
            output.write_file(path, bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "earlier" and list(tmp_path.iterdir()) == [path]


def test_write_file_follows_links_and_writes_to_pipes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    output.write_file(tmp_path / "link", b"page")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"page"
    reading, writing = os.pipe()
    output.write_file(Path(f"/dev/fd/{writing}"), b"page")
    assert os.read(reading, 10) == b"page"
    os.close(reading)
    os.close(writing)


def test_write_file_refuses_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="No such file or directory"):
        output.write_file(tmp_path / "typo" / "report.html", b"page")
