"""How a command prints: sentences, tables and JSON."""

from __future__ import annotations

import codecs
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.core.secrets import redact_text
from steptime.store.atomic import atomic_write

# As a file's name: print its content.
STDOUT = Path("-")
# A pipe has no width: wide enough that nothing is cut.
PIPED_WIDTH = 10_000
# The name of the error handler for characters that a stream cannot encode.
# Registered below with `codecs`, and used by main._open_streams.
PLAIN = "steptime-plain"
# Characters that the commands print and ASCII lacks.
ASCII_REPLACEMENTS = str.maketrans(
    {"×": "x", "µ": "u", "±": "+-", "…": "...", "·": "|", "–": "-", "−": "-", "→": "->"}
)
ESCAPED_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}
# These columns never fold: half an id names nothing.
UNFOLDED = ("id", "session")


def echo(text: str = "") -> None:
    print(escape_controls(text))


def escape_controls(text: str) -> str:
    """Show control characters: a title or a file name may hold terminal escape sequences."""
    return text.translate(ESCAPED_CONTROLS)


def _replace_characters(problem: UnicodeError) -> tuple[str, int]:
    """For a terminal that has only ASCII."""
    assert isinstance(problem, UnicodeEncodeError)
    text = problem.object[problem.start : problem.end].translate(ASCII_REPLACEMENTS)
    return text.encode("ascii", "replace").decode("ascii"), problem.end


codecs.register_error(PLAIN, _replace_characters)


def note(text: str) -> None:
    """Tell a person something beside the result; a program that reads the output gets nothing."""
    if sys.stderr.isatty():
        print(escape_controls(redact_text(text)), file=sys.stderr)


def warn(text: str) -> None:
    """Tell something beside the result that is too important to be left out for a program."""
    print(escape_controls(redact_text(text)), file=sys.stderr)


def width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_WIDTH


def print_json(value: Any) -> None:
    """Print one JSON document. JSON has neither infinity nor NaN: both become null."""
    print(json.dumps(_finite(value), ensure_ascii=False, indent=2))


def check_stdout(path: Path, *, json: bool) -> None:
    if path == STDOUT and json:
        raise SteptimeError("-o - and --json would both print: name a file after -o.")


def echo_about(path: Path, text: str) -> None:
    """A sentence about a file that was written; on stderr if the file itself was printed."""
    if path == STDOUT:
        warn(text)
    else:
        echo(text)


def write_file(path: Path, data: bytes) -> None:
    """Replace a file only when the new content is complete; write to a device or pipe directly."""
    if path == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    try:
        if path.is_file() or (path.parent.is_dir() and not path.exists()):
            # Resolved, so that a symbolic link stays one.
            with atomic_write(path.resolve(), sync=False, private=False) as draft:
                draft.write_bytes(data)
        else:
            path.write_bytes(data)
    except OSError as problem:
        raise SteptimeError(f"{path} cannot be written: {problem.strerror}.") from problem


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    # Imported late: help and --json need no Rich and start faster without it.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    is_terminal = sys.stdout.isatty()
    # Two spaces between columns: with Rich's three, tables of results need 120 columns.
    padding = (0, 1, 0, 0)
    table = Table(box=box.SIMPLE_HEAD, padding=padding, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            # A pipe is read by programs: a row must stay on one line.
            no_wrap=not is_terminal or column in UNFOLDED,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(escape_controls(cell)) for cell in row))
    console = Console(width=width(), highlight=False)
    with console.capture() as capture:
        console.print(table)
    # Rich pads every row to the width of the table.
    for line in capture.get().rstrip("\n").split("\n"):
        print(line.rstrip())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    # NaN is the one number that differs from itself.
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value
