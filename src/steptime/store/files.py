"""Reading a file that others may have replaced: a pipe or a device would be read without end."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_file(path: Path) -> BufferedReader:
    """Open an ordinary file for reading. Raises OSError for anything else, and never waits."""
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "Not an ordinary file", str(path))


def read_bytes(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read()


def read_text(path: Path, errors: str = "strict") -> str:
    return read_bytes(path).decode(errors=errors)
