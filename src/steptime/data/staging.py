"""A data set's files, copied to a tier before anything is measured: a step of its own, with its bytes and seconds."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.data import tiers
from steptime.data.sets import VARIABLE, DataSet, folder


@contextlib.contextmanager
def staged(files: DataSet, tier: str, owner: str) -> Iterator[dict[str, Any]]:
    """Inside, the set is read from the tier. Tells what was copied; the copies go at the end. Where this process is
    killed before that, whoever started it finds them by the owner's name."""
    target, source = _folder(tier), folder()
    found = [path for name in (*files.files, *files.other_forms) if (path := files.find(name, source))]
    if not found:
        raise files.missing(next(iter(files.files)), source)
    with tempfile.TemporaryDirectory(prefix=f"steptime-data-{owner}-", dir=target) as copy, _reading_from(copy):
        begin = time.perf_counter()
        paths = [Path(shutil.copy(path, copy)) for path in found]
        for path in paths:
            _synchronise(path)
        seconds, size = time.perf_counter() - begin, sum(path.stat().st_size for path in paths)
        yield {
            "folder": tier,
            "files": len(paths),
            "bytes": size,
            "seconds": seconds,
            "bytes_per_second": size / seconds,
            "from": tiers.describe(source),
            "on": tiers.describe(copy),
        }


def _folder(tier: str) -> Path:
    path = Path(os.path.expanduser(os.path.expandvars(tier)))
    if "$" in str(path):
        raise SteptimeError(f"The tier {tier} of the machine file names a variable that is not set here.")
    if not os.access(path, os.W_OK):
        raise SteptimeError(f"The tier {tier} of the machine file is {path}, which is not there or can not be written.")
    return path


@contextlib.contextmanager
def _reading_from(copy: str) -> Iterator[None]:
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = copy
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def _synchronise(path: Path) -> None:
    """Copied means on the disk, not on its way there."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
