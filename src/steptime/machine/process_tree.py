"""What a process and all its children have used so far, read from /proc from outside."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
WORKER = b"steptime.worker"
# A launcher forks, prepares and only then executes a worker: until then it looks like any process.
SETTLED_SECONDS = 10.0
# The first two count all read and write calls, the others what reached the storage.
IO_COLUMNS = {
    b"rchar": "read_bytes",
    b"wchar": "written_bytes",
    b"read_bytes": "disk_read_bytes",
    b"write_bytes": "disk_written_bytes",
}


class ProcessStat(NamedTuple):
    parent: int
    session: int
    # Tells a process from a later one with the same number.
    start_ticks: int
    # Its own, and those of the children that it has waited for.
    cpu_ticks: int
    memory_pages: int
    threads: int


Stats = dict[int, ProcessStat]


def process_age_seconds(proc: Path = Path("/proc")) -> float:
    """How long this process has been running; 0 if the system does not say."""
    stat = ProcessTree(os.getpid(), proc).read_stat(os.getpid())
    if stat is None:
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks * TICK_SECONDS)


class ProcessTree:
    """The session that `root` leads, and all its descendants.

    Counters only grow, even if a child ends: a parent inherits the usage of a child that it
    waited for, and the usage of orphans is remembered here. Any other process is looked at once,
    because no process joins the tree later. With a `journal`, the workers that write it belong
    to the tree with their children, even if another launcher (srun, podman) started them. Then
    other processes are looked at again until a worker is found, and young ones after that."""

    def __init__(self, root: int, proc: Path = Path("/proc"), *, journal: str = "") -> None:
        self._root = root
        self._proc = proc
        self._journal = journal.encode()
        self._stats: Stats = {}
        self._usage: dict[int, Counter[str]] = {}
        self._orphan_usage: Counter[str] = Counter()
        self._strangers: set[int] = set()
        self._foreign_workers: set[int] = set()

    def read(self) -> dict[str, float]:
        stats = self._read_members()
        usage = {process: self._read_usage(process, stat) for process, stat in stats.items()}
        for process in self._stats.keys() - stats.keys():
            if not self._is_inherited(process, stats):
                self._orphan_usage += self._usage[process]
        self._stats = stats
        self._usage = usage
        total = sum(usage.values(), Counter(self._orphan_usage))
        row: dict[str, float] = {
            "cpu_seconds": total["cpu_ticks"] * TICK_SECONDS,
            "memory_bytes": PAGE_BYTES * sum(stat.memory_pages for stat in stats.values()),
            "processes": len(stats),
            "threads": sum(stat.threads for stat in stats.values()),
        }
        if self._foreign_workers:
            row["apart"] = len(self._foreign_workers)
        # A sum without some of the processes would mislead.
        for name in IO_COLUMNS.values():
            if usage and all(name in counters for counters in usage.values()):
                row[name] = total[name]
        return row

    def _read_members(self) -> Stats:
        present = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        stats: Stats = {}
        for process in present - self._strangers:
            stat = self.read_stat(process)
            if stat is not None:
                stats[process] = stat
        members = {process for process in stats if self._is_member(process, stats[process])}
        members = _add_descendants(members, stats)
        new_workers: set[int] = set()
        if self._journal:
            workers = {process for process in stats.keys() - members if self._is_worker(process)}
            # A rank's child may have the same command line; it counts as a child only.
            new_workers = {process for process in workers if stats[process].parent not in workers}
        members |= _add_descendants(new_workers, stats)
        self._foreign_workers |= new_workers
        self._strangers = present - members - self._possible_workers(stats)
        return {process: stats[process] for process in members}

    def _possible_workers(self, stats: Stats) -> set[int]:
        """Processes that may still become workers of the journal."""
        if not self._journal:
            return set()
        if not self._foreign_workers:
            return set(stats)
        settled_ticks = self._read_uptime() - SETTLED_SECONDS / TICK_SECONDS
        return {process for process, stat in stats.items() if stat.start_ticks > settled_ticks}

    def _read_uptime(self) -> float:
        """Ticks since boot, as the start of a process is counted."""
        return float((self._proc / "uptime").read_text().split()[0]) / TICK_SECONDS

    def _is_member(self, process: int, stat: ProcessStat) -> bool:
        if process == self._root or stat.session == self._root:
            return True
        before = self._stats.get(process)
        return before is not None and before.start_ticks == stat.start_ticks

    def _is_worker(self, process: int) -> bool:
        try:
            arguments = self._read_file(process, "cmdline").split(b"\0")
        except OSError:
            return False
        return WORKER in arguments and self._journal in arguments

    def read_stat(self, process: int) -> ProcessStat | None:
        """None: the process is gone."""
        with suppress(OSError, IndexError, ValueError):
            # The name may contain blanks and brackets: the numbers follow the last bracket.
            fields = self._read_file(process, "stat").rpartition(b")")[2].split()
            return ProcessStat(
                parent=int(fields[1]),
                session=int(fields[3]),
                start_ticks=int(fields[19]),
                cpu_ticks=sum(map(int, fields[11:15])),
                memory_pages=int(fields[21]),
                threads=int(fields[17]),
            )
        return None

    def _read_usage(self, process: int, stat: ProcessStat) -> Counter[str]:
        usage = Counter(cpu_ticks=stat.cpu_ticks)
        with suppress(OSError, ValueError):
            for line in self._read_file(process, "io").splitlines():
                name, _, value = line.partition(b": ")
                if name in IO_COLUMNS:
                    usage[IO_COLUMNS[name]] = int(value)
        return usage

    def _read_file(self, process: int, name: str) -> bytes:
        with open(f"{self._proc}/{process}/{name}", "rb", buffering=0) as file:
            return file.read()

    def _is_inherited(self, process: int, stats: Stats) -> bool:
        """Whether an ancestor in the tree is alive, and so has inherited its usage."""
        ancestor: int | None = process
        while ancestor in self._stats:
            ancestor = self._stats[ancestor].parent
            if ancestor in stats:
                return True
        return False


def _add_descendants(processes: set[int], stats: Stats) -> set[int]:
    children: dict[int, list[int]] = {}
    for process, stat in stats.items():
        children.setdefault(stat.parent, []).append(process)
    members = set(processes)
    pending = list(processes)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in members:
                members.add(child)
                pending.append(child)
    return members
