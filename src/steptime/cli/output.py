"""How a command prints: sentences, tables and JSON."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from steptime.core.errors import SteptimeError
from steptime.core.secrets import redact_text
from steptime.store.atomic import atomic_write

# As a file's name: print its content.
STDOUT = Path("-")
# A pipe has no width: wide enough that no table leaves out a column.
PIPED_WIDTH = 1_000_000
# A terminal that knows no size, and the least for which text is arranged.
USUAL_WIDTH = 80
LEAST_WIDTH = 20
# A number and its unit stay on one line: 5.9 ms, 42 %, 3 GiB.
UNIT_GAP = re.compile(r"(?<=[\d∞]) (?=(?:%|[nµm]?s|min|h|[kMGTP]?i?(?:B|FLOP|W|Hz))(?!\w))")
NO_BREAK = "\N{NO-BREAK SPACE}"
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


def echo(text: str = "") -> None:
    """Sentences for people: whole words on lines that fit the terminal, one line in a pipe."""
    _print_wrapped(escape_controls(text), sys.stdout)


def echo_verbatim(text: str) -> None:
    """A file's content, or lines of a format, which would not survive other line breaks."""
    print(escape_controls(text))


def echo_labelled(label: str, text: str, margin: int) -> None:
    """A line with its name; what does not fit continues below the text."""
    text = escape_controls(text)
    columns = width() - margin
    lines = wrap(text, columns)
    start = f"{escape_controls(label):<{margin}}"
    # Below the name, if a single word is too long to stand beside it.
    if len(lines) > 1 and max(map(len, text.split())) > columns:
        indent = len(label) - len(label.lstrip()) + 2
        lines = ["", *wrap(text, width() - indent)]
        margin = indent
    print((start + lines[0]).rstrip())
    for line in lines[1:]:
        print(" " * margin + line)


def wrap(text: str, columns: int) -> list[str]:
    """Lines of whole words. A word that is wider than a line gets one of its own, unbroken."""
    # Wide characters of other scripts take two columns.
    from rich.cells import cell_len

    lines = []
    line, *rest = UNIT_GAP.sub(NO_BREAK, text).split(" ")
    for piece in rest:
        if cell_len(line) + 1 + cell_len(piece) <= columns:
            line += f" {piece}"
        else:
            lines.append(line)
            line = piece
    return [line.replace(NO_BREAK, " ").rstrip() for line in (*lines, line)]


def _print_wrapped(text: str, stream: TextIO) -> None:
    if not stream.isatty():
        print(text, file=stream)
        return
    columns = width(stream)
    for paragraph in text.split("\n"):
        body = paragraph.lstrip(" ")
        indent = len(paragraph) - len(body)
        # An indented line continues further to the right: the next one begins a new item.
        hanging = " " * (indent + 2) if indent else ""
        for number, line in enumerate(wrap(body, columns - len(hanging))):
            print((hanging if number else " " * indent) + line, file=stream)


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
        _print_wrapped(escape_controls(redact_text(text)), sys.stderr)


def warn(text: str) -> None:
    """Tell something beside the result that is too important to be left out for a program."""
    _print_wrapped(escape_controls(redact_text(text)), sys.stderr)


def width(stream: TextIO | None = None) -> int:
    """Of a terminal; of standard output unless another stream is named."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return PIPED_WIDTH
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    # $COLUMNS comes first, then standard output, then this stream.
    fallback = (columns or USUAL_WIDTH, 0)
    return max(LEAST_WIDTH, shutil.get_terminal_size(fallback).columns)


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
    with open_output(path) as stream:
        stream.write(data)


@contextlib.contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Replace a file only when the new content is complete; write to a device or pipe directly."""
    if path == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    try:
        if path.is_file() or (path.parent.is_dir() and not path.exists()):
            # Resolved, so that a symbolic link stays one.
            with (
                atomic_write(path.resolve(), sync=False, private=False) as draft,
                draft.open("wb") as stream,
            ):
                yield stream
        else:
            with path.open("wb") as stream:
                yield stream
    except OSError as problem:
        raise SteptimeError(f"{path} cannot be written: {problem.strerror}.") from problem


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    # NaN is the one number that differs from itself.
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value
