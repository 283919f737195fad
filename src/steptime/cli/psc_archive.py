"""Writes a campaign into a folder as PSC's scripts did.

Older files of this kind are moved aside, never overwritten."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from steptime.cli.output import warn, write_file
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.core.record import Record

# Only files with such a name are moved; other people's files stay where they are.
DATED = re.compile(r"\d{4}-\d\d-\d\d[-:]")
ARCHIVED = "archived"


def write_archive(records: Sequence[Record], folder: Path) -> list[Path]:
    from steptime.formats import Skipped
    from steptime.formats._psc_archive import pages

    contents: dict[str, bytes] = {}
    reasons: Counter[str] = Counter()
    for page in pages(records):
        if isinstance(page, Skipped):
            reasons[page.reason] += 1
        else:
            contents[page.name] = page.data
    # Before the check below, so that an empty archive says why it is empty.
    for reason, times in reasons.items():
        warn(f"note: {times} results are not in {folder}: {reason}")
    # PSC's format knows only their Deep MNIST network.
    if not contents:
        raise SteptimeError(
            f"No result of this campaign fits PSC's archive, so {folder} was not touched."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _move_older_files(folder, contents)
    except OSError as problem:
        raise SteptimeError(f"{folder} cannot be used: {problem.strerror}.") from problem
    for name, data in contents.items():
        write_file(folder / name, data)
    return [folder / name for name in contents]


def _move_older_files(folder: Path, contents: dict[str, bytes]) -> None:
    """Files that would be written again unchanged stay."""
    for path in sorted(folder.iterdir()):
        if not path.is_file() or not DATED.match(path.name):
            continue
        if path.read_bytes() != contents.get(path.name):
            path.rename(_free_path(folder / ARCHIVED, path.name))


def _free_path(archived: Path, name: str) -> Path:
    """archived/NAME, or the first of archived/2/NAME, archived/3/NAME, … that is free."""
    for number in count(1):
        path = archived / (str(number) if number > 1 else "") / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            return path
    raise AssertionError("unreachable")
