"""`python -m steptime.machine.monitor PID SECONDS DEVICE [JOURNAL]`: watches a worker from outside, in lines of JSON.

Counters grow since the process or the machine began, so that a lost line loses no bytes. It ends with the worker. A
journal is named where somebody else starts those who write it: they are looked for, too."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from steptime.engine import gpu
from steptime.machine.process_tree import TICK_SECONDS, Tree

SHARE = 0.01
"""Watching may take this part of one CPU: where a look is dear, there are fewer of them."""
SECTOR_BYTES = 512
TREE = (
    "cpu_seconds",
    "memory_bytes",
    "read_bytes",
    "written_bytes",
    "disk_read_bytes",
    "disk_written_bytes",
)
MACHINE = ("machine_cpu_seconds", "network_received_bytes", "network_sent_bytes", "loopback_bytes",
           "machine_disk_read_bytes", "machine_disk_written_bytes")  # fmt: skip
BOARD = (
    "utilisation",
    "memory_bytes",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "power_w",
    "reasons",
)


def main() -> int:
    worker, seconds, device, journal = (
        int(sys.argv[1]),
        float(sys.argv[2]),
        sys.argv[3],
        "".join(sys.argv[4:]),
    )
    os.nice(19)
    try:
        ended = os.pidfd_open(worker)
    except ProcessLookupError:
        return 0
    found = boards(device, None if device == "cpu" else gpu.open_nvml())
    watch(ended, Watcher(worker, found, journal=journal), seconds, device)
    return 0


def watch(ended: int, watcher: Watcher, seconds: float, device: str) -> None:
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    first, begin = watcher.read(), time.perf_counter_ns()
    where = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    told = {
        "interval_seconds": seconds,
        "first_ns": begin,
        "node": where,
        "absent": absent(first, device),
    }
    print(json.dumps(told), flush=True)
    row, cost = first, 0.0
    while True:
        now, used = (time.perf_counter_ns() - begin) / 1e9, time.process_time()
        print(
            json.dumps({"seconds": round(now, 6), "own_cpu_seconds": round(used, 6), **row}),
            flush=True,
        )
        if poll.poll(1000 * max(seconds, cost / SHARE)):
            return
        row = watcher.read()
        cost = time.process_time() - used


class Watcher:
    def __init__(
        self,
        worker: int,
        boards: dict[str, tuple[Any, Any]],
        root: Path = Path("/"),
        *,
        journal: str = "",
    ) -> None:
        self._tree, self._boards = Tree(worker, root / "proc", journal=journal), boards
        self._network, self._root = (
            root / "proc" / str(worker) / "net" / "dev",
            root,
        )  # as the worker sees it
        self._disks = {path.parent.name for path in root.glob("sys/block/*/device")}

    def read(self) -> dict[str, float]:
        found = {**self._tree.read(), **cpu(self._root), **network(self._network)}
        found |= disks(self._root, self._disks)
        for name, (nvml, handle) in self._boards.items():
            found |= {f"{name}.{what}": value for what, value in gpu.state(nvml, handle).items()}
        return found


def absent(found: dict[str, float], device: str) -> list[str]:
    """What was asked for and this system does not tell."""
    names = sorted({name.partition(".")[0] for name in found if "." in name})
    boards = (
        [] if device == "cpu" else [f"{name}.{what}" for name in names or ["gpu"] for what in BOARD]
    )
    return [name for name in (*TREE, *MACHINE, *boards) if name not in found]


def boards(device: str, nvml: Any | None) -> dict[str, tuple[Any, Any]]:
    """The one behind `cuda:N`, or, for the bare word `cuda`, all that a process may see."""
    if nvml is None or device == "cpu":
        return {}
    count = gpu.visible_count(nvml) if device == "cuda" else 1
    first = 0 if device == "cuda" else int(device.removeprefix("cuda:"))
    found = {f"gpu{index}": gpu.handle(nvml, index) for index in range(first, first + count)}
    return {name: (nvml, handle) for name, handle in found.items() if handle is not None}


def cpu(root: Path) -> dict[str, float]:
    """All that computed on this machine: user, nice, system, interrupts; neither idle nor stolen."""
    with suppress(OSError, ValueError, IndexError):
        ticks = [
            int(word) for word in (root / "proc/stat").read_text().splitlines()[0].split()[1:8]
        ]
        return {"machine_cpu_seconds": (sum(ticks) - ticks[3] - ticks[4]) * TICK_SECONDS}
    return {}


def network(path: Path) -> dict[str, float]:
    """Of all interfaces that this process sees, whoever sent; what never left the machine is told apart."""
    received = sent = loopback = 0
    with suppress(OSError, ValueError, IndexError):
        for line in path.read_text().splitlines()[2:]:
            name, _, rest = line.partition(":")
            words = rest.split()
            if name.strip() == "lo":
                loopback += int(words[0])
            else:
                received, sent = received + int(words[0]), sent + int(words[8])
        return {
            "network_received_bytes": received,
            "network_sent_bytes": sent,
            "loopback_bytes": loopback,
        }
    return {}


def disks(root: Path, names: set[str]) -> dict[str, float]:
    """Of these together, whoever asked. Partitions and mapped devices are not among them: theirs are a disk's bytes."""
    read = written = 0
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/diskstats").read_text().splitlines():
            words = line.split()
            if words[2] in names:
                read, written = read + int(words[5]), written + int(words[9])
        return {
            "machine_disk_read_bytes": SECTOR_BYTES * read,
            "machine_disk_written_bytes": SECTOR_BYTES * written,
        }
    return {}


if __name__ == "__main__":
    sys.exit(main())
