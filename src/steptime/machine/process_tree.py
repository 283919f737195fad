"""What a process and all its children have used so far, read from /proc by somebody else. Knows no framework."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
WORKER = b"steptime.worker"
IO = {
    b"rchar": "read_bytes",
    b"wchar": "written_bytes",
    b"read_bytes": "disk_read_bytes",
    b"write_bytes": "disk_written_bytes",
}
"""By calls, whether from memory or not; and what storage had to fetch or take."""


class Life(NamedTuple):
    parent: int
    session: int
    began: int  # tells a process from a later one with its number
    cpu_ticks: int  # its own, and those of children that it has waited for
    memory_pages: int
    threads: int


class Tree:
    """The session that `root` leads, and every descendant of it. Counters only grow, also when a child ends: a parent
    takes over what a child has used that it waited for, and what an orphan had used is remembered here. A stranger is
    looked at once: nobody joins a family later. With a `journal`, workers that write it and were started by somebody
    else (srun, podman) belong to it, too, with their children; until one is found, strangers are looked at again."""

    def __init__(self, root: int, proc: Path = Path("/proc"), *, journal: str = "") -> None:
        self._root, self._proc, self._journal = root, proc, journal.encode()
        self._lives: dict[int, Life] = {}
        self._used: dict[int, Counter[str]] = {}
        self._orphans: Counter[str] = Counter()
        self._strangers: set[int] = set()
        self._apart: set[int] = set()

    def read(self) -> dict[str, float]:
        lives = self._members()
        used = {process: self._counters(process, life) for process, life in lives.items()}
        for process in self._lives.keys() - lives.keys():
            if not self._is_inherited(process, lives):
                self._orphans += self._used[process]
        self._lives, self._used = lives, used
        total = sum(used.values(), Counter(self._orphans))
        ticks = total.pop("cpu_ticks", 0)
        asked = [name for name in IO.values() if all(name in found for found in used.values())]
        return {
            "cpu_seconds": ticks * TICK_SECONDS,
            "memory_bytes": PAGE_BYTES * sum(life.memory_pages for life in lives.values()),
            "processes": len(lives),
            "threads": sum(life.threads for life in lives.values()),
            **({"apart": len(self._apart)} if self._apart else {}),
            **{name: total[name] for name in asked if used},
        }

    def _members(self) -> dict[int, Life]:
        present = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        lives = {
            process: life
            for process in present - self._strangers
            if (life := self._life(process)) is not None
        }
        known = {
            p for p, life in self._lives.items() if p in lives and lives[p].began == life.began
        }
        own = {p for p, life in lives.items() if p == self._root or life.session == self._root}
        found = _with_children(own | known, lives)
        new = {p for p in lives.keys() - found if self._is_worker(p)} if self._journal else set()
        new = {p for p in new if lives[p].parent not in new}
        found |= _with_children(new, lives)
        settled = not self._journal or (self._apart and not new)
        self._apart |= new
        self._strangers = present - found if settled else set()
        return {process: lives[process] for process in found}

    def _is_worker(self, process: int) -> bool:
        try:
            words = self._read(process, "cmdline").split(b"\0")
        except OSError:
            return False
        return WORKER in words and self._journal in words

    def _life(self, process: int) -> Life | None:
        """None: it is gone meanwhile."""
        with suppress(OSError, IndexError, ValueError):
            # A name may hold blanks and brackets: the numbers stand behind the last bracket.
            words = self._read(process, "stat").rpartition(b")")[2].split()
            ticks = sum(map(int, words[11:15]))
            return Life(
                int(words[1]), int(words[3]), int(words[19]), ticks, int(words[21]), int(words[17])
            )
        return None

    def _counters(self, process: int, life: Life) -> Counter[str]:
        found = Counter(cpu_ticks=life.cpu_ticks)
        with suppress(OSError, ValueError):
            for line in self._read(process, "io").splitlines():
                name, _, value = line.partition(b": ")
                if name in IO:
                    found[IO[name]] = int(value)
        return found

    def _read(self, process: int, name: str) -> bytes:
        with open(f"{self._proc}/{process}/{name}", "rb", buffering=0) as file:
            return file.read()

    def _is_inherited(self, process: int, lives: dict[int, Life]) -> bool:
        """Whether somebody of the tree who still lives stands above it, and so has its use among his own."""
        above: int | None = process
        while above in self._lives:
            above = self._lives[above].parent
            if above in lives:
                return True
        return False


def _with_children(chosen: set[int], lives: dict[int, Life]) -> set[int]:
    children: dict[int, list[int]] = {}
    for process, life in lives.items():
        children.setdefault(life.parent, []).append(process)
    found, waiting = set(chosen), list(chosen)
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found.update(new)
        waiting += new
    return found
