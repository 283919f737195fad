"""Count the kernel's out-of-memory kills, to tell them from other deaths of a process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def count_oom_kills(root: Path = Path("/")) -> int:
    """Processes killed for lack of memory since boot, including kills inside control groups.

    0 if the kernel does not report the counter."""
    with suppress(OSError):
        for line in (root / "proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
