"""Copy a dataset's files to a tier before the measurement, and report bytes and seconds."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steptime.core.errors import FULL_DISK, NoSpace, SteptimeError
from steptime.core.job import STAGED_PREFIX
from steptime.data import tiers
from steptime.data.sets import VARIABLE, DataSet, data_folder

COPY_NAME = re.compile(
    rf"{STAGED_PREFIX}.*-(?P<namespace>[0-9a-f]+\.\d+)-(?P<process>\d+)-(?P<start>\d+)-[^-]+"
)
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = Path("/proc/self/ns/pid")
# Index in /proc/PID/stat, counted after the process name.
START_TIME = 19


@contextlib.contextmanager
def stage(dataset: DataSet, tier: str, owner: str) -> Iterator[dict[str, Any]]:
    """While the context is open, the dataset is read from the tier. Yields facts of the copy.

    The copies are removed at the end. If this process is killed first, the run that started it
    removes them by the owner's name, or the next process that stages does."""
    target = _tier_folder(tier)
    source = data_folder()
    names = (*dataset.files, *dataset.other_forms)
    candidates = [dataset.find(name, source) for name in names]
    originals = [path for path in candidates if path is not None]
    if not originals:
        raise dataset.missing_file_error(next(iter(dataset.files)), source)
    remove_stale(target)
    prefix = f"{STAGED_PREFIX}{owner}-{_process_tag()}-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix, dir=target) as copy,
        _read_data_from(copy),
    ):
        begin = time.perf_counter()
        copies = _copy_files(originals, copy)
        seconds = time.perf_counter() - begin
        size = sum(path.stat().st_size for path in copies)
        yield {
            "folder": tier,
            "files": len(copies),
            "bytes": size,
            "seconds": seconds,
            "bytes_per_second": size / seconds,
            "from": tiers.describe(source),
            "on": tiers.describe(copy),
        }


def _tier_folder(tier: str) -> Path:
    path = Path(os.path.expanduser(os.path.expandvars(tier)))
    if "$" in str(path):
        raise SteptimeError(
            f"The tier {tier} of the machine file uses an environment variable that is not set."
        )
    if not (path.is_dir() and os.access(path, os.W_OK)):
        raise SteptimeError(f"The tier {tier} of the machine file is not a writable folder here.")
    return path


def _copy_files(originals: list[Path], target: str) -> list[Path]:
    """Copied means on the disk, not only in the page cache."""
    # An error that is not about space is a broken disk: it ends the worker as a crash.
    try:
        copies = [Path(shutil.copy(path, target)) for path in originals]
        for path in copies:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    except OSError as problem:
        if problem.errno not in FULL_DISK:
            raise
        megabytes = sum(path.stat().st_size for path in originals) / 1e6
        raise NoSpace(
            f"{megabytes:.0f} MB cannot be staged in {Path(target).parent}: {problem.strerror}."
        ) from problem
    return copies


@contextlib.contextmanager
def _read_data_from(copy: str) -> Iterator[None]:
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = copy
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def remove_stale(target: Path) -> None:
    """Remove this user's copies whose process is gone.

    Copies made on another host, in a container or before the last boot stay: whether their
    process lives cannot be seen from here."""
    # The folder may be unreadable, or another process may remove the same copies.
    with contextlib.suppress(OSError):
        for path in target.glob(f"{STAGED_PREFIX}*"):
            if _is_stale(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_stale(path: Path) -> bool:
    match = COPY_NAME.fullmatch(path.name)
    if not match or match["namespace"] != _process_namespace():
        return False
    if _start_time(match["process"]) == match["start"]:
        return False
    return path.lstat().st_uid == os.getuid()


def _process_tag() -> str:
    """Identifies this process; with the number by which /proc knows it."""
    number = os.readlink("/proc/self") if os.path.islink("/proc/self") else os.getpid()
    return f"{_process_namespace()}-{number}-{_start_time('self')}"


def _process_namespace() -> str:
    """Where a process number is unique: this boot of this host, and this PID namespace."""
    try:
        boot_id = BOOT_ID.read_text().strip().replace("-", "")
        return f"{boot_id[:12]}.{PID_NAMESPACE.stat().st_ino}"
    except OSError:
        return ""


def _start_time(process: str) -> str:
    """In ticks since boot; tells a process from a later one with the same number. Empty: gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return ""
    # The process name may contain blanks and brackets.
    fields = text.rpartition(")")[2].split()
    return fields[START_TIME]
