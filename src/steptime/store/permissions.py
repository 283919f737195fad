"""Who may read a store: by default only its owner.

`STEPTIME_UMASK=027` shares new files with the group."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from steptime.core.errors import SteptimeError

VARIABLE = "STEPTIME_UMASK"
PRIVATE = "077"


def file_mode() -> int:
    return 0o666 & ~_umask()


def make_folder(path: Path) -> None:
    """Make the folder and those above it that are missing."""
    if path.is_dir():
        return
    make_folder(path.parent)
    mode = 0o777 & ~_umask()
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    # The umask of this process may have taken permissions away that STEPTIME_UMASK gives.
    with contextlib.suppress(PermissionError):
        path.chmod(mode)


def open_private(path: str | Path, flags: int) -> int:
    """An `opener` for files of a store."""
    mode = file_mode()
    file = os.open(path, flags, mode)
    # Another user's file keeps its mode, and some file systems have none.
    with contextlib.suppress(OSError):
        os.fchmod(file, mode)
    return file


def write_private(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def _umask() -> int:
    text = os.environ.get(VARIABLE) or PRIVATE
    try:
        umask = int(text, 8)
    except ValueError:
        umask = -1
    # The owner must be able to read and write what is stored.
    if not 0 <= umask <= 0o077:
        raise SteptimeError(
            f"{VARIABLE} is {text!r}: it must be an octal number from 000 to 077. "
            "Set 027, for example, to let your group read the store."
        )
    return umask
