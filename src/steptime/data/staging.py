"""A data set's files, copied to a tier before anything is measured: a step of its own, with its bytes and seconds."""

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
from steptime.data import tiers
from steptime.data.sets import VARIABLE, DataSet, folder

PREFIX = "steptime-data-"
NAME = re.compile(rf"{PREFIX}.*-(?P<place>[0-9a-f]+\.\d+)-(?P<process>\d+)-(?P<began>\d+)-[^-]+")
BOOT, PROCESSES = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")


@contextlib.contextmanager
def staged(files: DataSet, tier: str, owner: str) -> Iterator[dict[str, Any]]:
    """Inside, the set is read from the tier. Tells what was copied; the copies go at the end. Where this process is
    killed before that, whoever started it finds them by the owner's name, or the next one that stages does."""
    target, source = _folder(tier), folder()
    found = [
        path for name in (*files.files, *files.other_forms) if (path := files.find(name, source))
    ]
    if not found:
        raise files.missing(next(iter(files.files)), source)
    remove_stale(target)
    with (
        tempfile.TemporaryDirectory(prefix=f"{PREFIX}{owner}-{_self()}-", dir=target) as copy,
        _reading_from(copy),
    ):
        begin = time.perf_counter()
        paths = _copied(found, copy)
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
        raise SteptimeError(
            f"The tier {tier} of the machine file names a variable that is not set here."
        )
    if not (path.is_dir() and os.access(path, os.W_OK)):
        raise SteptimeError(
            f"The tier {tier} of the machine file is no folder here that can be written."
        )
    return path


def _copied(found: list[Path], copy: str) -> list[Path]:
    try:
        paths = [Path(shutil.copy(path, copy)) for path in found]
        for path in paths:
            _synchronise(path)
    except OSError as problem:
        if problem.errno not in FULL_DISK:
            raise
        size = sum(path.stat().st_size for path in found) / 1e6
        raise NoSpace(
            f"{size:.0f} MB cannot be staged in {Path(copy).parent}: {problem.strerror}."
        ) from problem
    return paths


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


def remove_stale(target: Path) -> None:
    """This user's copies whose process is gone. A process of another host, of a container or of an earlier boot can
    not be judged from here: theirs stay."""
    with contextlib.suppress(
        OSError
    ):  # a folder that may not be listed, or another process that is at it, too
        for path in target.glob(f"{PREFIX}*"):
            if _is_stale(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_stale(path: Path) -> bool:
    named = NAME.fullmatch(path.name)
    if not named or named["place"] != _place() or _began(named["process"]) == named["began"]:
        return False
    return path.lstat().st_uid == os.getuid()


def _self() -> str:
    """By the number that /proc has for it, because there it is looked up."""
    number = os.readlink("/proc/self") if os.path.islink("/proc/self") else os.getpid()
    return f"{_place()}-{number}-{_began('self')}"


def _place() -> str:
    """Where a process's number means something: this boot of this host, and the processes that see each other."""
    try:
        return f"{BOOT.read_text().strip().replace('-', '')[:12]}.{PROCESSES.stat().st_ino}"
    except OSError:
        return ""


def _began(process: str) -> str:
    """In ticks since the boot: tells a process from a later one with its number. Empty: it is gone."""
    try:
        words = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return words[19]
