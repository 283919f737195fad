"""Files that appear whole or not at all. Knows nothing of what is in them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def draft_of(path: Path, *, sync: bool = True) -> Iterator[Path]:
    """Write the draft inside. Afterwards the file is there and survives a crash, unless it is left to the caller to
    synchronise many at once. A killed writer leaves a draft, whose name begins with a dot and no reader looks for."""
    folders = {path.parent, *(folder.parent for folder in path.parents if not folder.exists())}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        yield draft
        if sync:
            synchronise(draft)
        draft.replace(path)
        for folder in folders if sync else ():
            synchronise(folder)  # the name, too, must survive
    finally:
        draft.unlink(missing_ok=True)


def synchronise(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
