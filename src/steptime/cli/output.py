"""What a command prints: sentences, tables, JSON."""

from __future__ import annotations

import codecs
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.store.atomic import atomic_write

PIPED_WIDTH = 10_000  # a pipe has no width: wide enough that nothing is cut
PLAIN = "steptime-plain"  # how a stream treats letters that it does not have
LETTERS = str.maketrans(
    {"×": "x", "µ": "u", "±": "+-", "…": "...", "·": "|", "–": "-", "−": "-", "→": "->"}
)
CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}
WHOLE = ("id", "session")  # columns that never fold: half an id names nothing


def say(text: str = "") -> None:
    print(visible(text))


def visible(text: str) -> str:
    """A title, or a file's name, may hold what moves the cursor or changes colours: it is shown, not obeyed."""
    return text.translate(CONTROLS)


def _plain(problem: UnicodeError) -> tuple[str, int]:
    """For a terminal that has only ASCII."""
    assert isinstance(problem, UnicodeEncodeError)
    letters = problem.object[problem.start : problem.end].translate(LETTERS)
    return letters.encode("ascii", "replace").decode("ascii"), problem.end


codecs.register_error(PLAIN, _plain)


def note(text: str) -> None:
    """For people, beside the result: nothing when the output is read by a program."""
    if sys.stderr.isatty():
        print(visible(text), file=sys.stderr)


def warn(text: str) -> None:
    """Beside the result, and too important to be left out for a program."""
    print(visible(text), file=sys.stderr)


def width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_WIDTH


def document(value: Any) -> None:
    """One JSON document. What is not a number is null: JSON has no infinity."""
    print(json.dumps(_finite(value), ensure_ascii=False, indent=2))


def write_file(path: Path, data: bytes) -> None:
    """What lay there before stays until the new one is whole; a device or a pipe is written to as it is."""
    try:
        if path.is_file() or (path.parent.is_dir() and not path.exists()):
            with atomic_write(path.resolve(), sync=False) as draft:  # a link stays one
                draft.write_bytes(data)
        else:
            path.write_bytes(data)
    except OSError as problem:
        raise SteptimeError(f"{path} cannot be written: {problem.strerror}.") from problem


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        whole = not terminal or column in WHOLE
        drawn.add_column(
            column, justify="right" if column in right else "left", no_wrap=whole, overflow="fold"
        )
    for row in rows:
        drawn.add_row(*(Text(visible(cell)) for cell in row))
    console = Console(width=width(), highlight=False)
    with console.capture() as drawing:
        console.print(drawn)
    print("\n".join(line.rstrip() for line in drawing.get().rstrip("\n").split("\n")))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value
