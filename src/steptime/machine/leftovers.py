"""No process stays behind: it dies with its parent, or is ended with its worker.

Children that began a session of their own are known by a variable of their environment, which
every child inherits."""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
VARIABLE = "STEPTIME_ATTEMPT"
# A process may start another while it is being ended.
MOST_ROUNDS = 10


def die_with_parent() -> None:
    """From now on the kernel kills this process if its parent dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_leftovers(attempt: str, proc: Path = Path("/proc")) -> int:
    """Kill all processes of this attempt, and return how many there were."""
    killed = 0
    for _ in range(MOST_ROUNDS):
        count = sum(_end_if_of(entry, attempt, proc) for entry in _processes(proc))
        killed += count
        if not count:
            break
    return killed


def _processes(proc: Path) -> list[int]:
    return [int(name) for name in os.listdir(proc) if name.isdigit() and int(name) != os.getpid()]


def _end_if_of(process: int, attempt: str, proc: Path) -> bool:
    # Opened before it is looked at, so that no other process with its number is killed.
    try:
        file = os.pidfd_open(process)
    except OSError:
        return False
    try:
        variables = (proc / str(process) / "environ").read_bytes().split(b"\0")
        if f"{VARIABLE}={attempt}".encode() not in variables:
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(file, signal.SIGKILL)
        return True
    # It has ended, or is another user's.
    except OSError:
        return False
    finally:
        os.close(file)
