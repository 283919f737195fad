"""Writes a campaign into a folder as PSC's scripts did. What is there already is moved aside, never overwritten."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from steptime.cli.output import say, warn, write_file
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.core.record import Record

DATED = re.compile(
    r"\d{4}-\d\d-\d\d[-:]"
)  # a name of such a folder; other people's files stay where they are
ARCHIVED = "archived"


def archive(records: Sequence[Record], folder: Path) -> list[Path]:
    from steptime.formats import Skipped
    from steptime.formats._psc_archive import pages

    found = list(pages(records))
    reasons = Counter(one.reason for one in found if isinstance(one, Skipped))
    new = {page.name: page.data for page in found if not isinstance(page, Skipped)}
    for reason, times in reasons.items():
        warn(f"note: {times} results are not in {folder}: {reason}")
    if not new:
        raise SteptimeError(
            f"Nothing of this campaign fits PSC's archive, so {folder} was not touched."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _set_aside(folder, new)
    except OSError as problem:
        raise SteptimeError(f"{folder} cannot be used: {problem.strerror}.") from problem
    for name, data in new.items():
        write_file(folder / name, data)
    return [folder / name for name in new]


def tell(paths: Sequence[Path], folder: Path) -> None:
    kinds = Counter(path.suffix if path.suffix in (".csv", ".svg") else "" for path in paths)
    older = f"; older ones are in {ARCHIVED}" if (folder / ARCHIVED).exists() else ""
    say(f"\n{folder}: {kinds['']} runs, {kinds['.csv']} table, {kinds['.svg']} charts{older}.")


def _set_aside(folder: Path, new: dict[str, bytes]) -> None:
    """What is there word for word already stays."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and DATED.match(path.name) and path.read_bytes() != new.get(path.name):
            path.rename(_free(folder / ARCHIVED, path.name))


def _free(archived: Path, name: str) -> Path:
    places = (archived / (str(number) if number > 1 else "") / name for number in count(1))
    free = next(place for place in places if not place.exists())
    free.parent.mkdir(parents=True, exist_ok=True)
    return free
