"""Count the kernel's out-of-memory kills in a process's own control group.

The count of the whole machine would blame this process for the death of another program."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS = "sys/fs/cgroup"


def count_oom_kills(root: Path = Path("/")) -> int | None:
    """Processes of this control group, and so of its workers, that any lack of memory killed.

    None: the system does not say."""
    for path in _counter_files(root):
        with suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return None


def has_grown(before: int | None, after: int | None) -> bool:
    """Whether the kernel has killed meanwhile. An unknown count is no evidence."""
    return before is not None and after is not None and after > before


def is_sigkill(code: int) -> bool:
    """Whether a process with this exit code was killed, or a shell that waited for one that was."""
    return code in (-signal.SIGKILL, 128 + signal.SIGKILL)


def _counter_files(root: Path) -> Iterator[Path]:
    """Version 1 and version 2 of control groups; a machine may have both."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        # In a container the group's own folder may be mounted in place of the root.
        for folder in (group.strip("/"), ""):
            if "memory" in controllers.split(","):
                yield root / GROUPS / "memory" / folder / "memory.oom_control"
            if not controllers:
                # Without `.local` the kills in groups below would count, too.
                yield root / GROUPS / folder / "memory.events.local"
                yield root / GROUPS / folder / "memory.events"
