"""`python -m steptime.machine.monitor PID SECONDS DEVICE [JOURNAL]`: watch a worker from outside.

Prints JSON lines and ends with the worker. Counters grow since the process started or since
boot, so a lost line loses no bytes. A journal is given if another launcher starts the workers:
then all processes that write this journal are watched."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from steptime.engine import gpu
from steptime.machine.process_tree import TICK_SECONDS, ProcessTree

# The monitor may use this share of one CPU: if a reading is expensive, there are fewer.
MOST_CPU_SHARE = 0.01
SECTOR_BYTES = 512
TREE_COLUMNS = (
    "cpu_seconds",
    "memory_bytes",
    "read_bytes",
    "written_bytes",
    "disk_read_bytes",
    "disk_written_bytes",
)
MACHINE_COLUMNS = (
    "machine_cpu_seconds",
    "network_received_bytes",
    "network_sent_bytes",
    "loopback_bytes",
    "machine_disk_read_bytes",
    "machine_disk_written_bytes",
)
BOARD_COLUMNS = (
    "utilisation",
    "memory_bytes",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "power_w",
    "reasons",
)


class Board(NamedTuple):
    nvml: Any
    handle: Any


def main() -> int:
    worker = int(sys.argv[1])
    seconds = float(sys.argv[2])
    device = sys.argv[3]
    journal = "".join(sys.argv[4:])
    # The monitor must not compete with the worker for a CPU.
    os.nice(19)
    try:
        worker_file = os.pidfd_open(worker)
    except ProcessLookupError:
        return 0
    nvml = None if device == "cpu" else gpu.open_nvml()
    watcher = Watcher(worker, find_boards(device, nvml), journal=journal)
    watch(worker_file, watcher, seconds, device)
    return 0


def watch(worker_file: int, watcher: Watcher, seconds: float, device: str) -> None:
    """`worker_file`: a pidfd, readable when the worker has ended."""
    poll = select.poll()
    poll.register(worker_file, select.POLLIN)
    row = watcher.read()
    begin_ns = time.perf_counter_ns()
    header = {
        "interval_seconds": seconds,
        "first_ns": begin_ns,
        "node": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "absent": missing_columns(row, device),
    }
    print(json.dumps(header), flush=True)
    cost = 0.0
    while True:
        elapsed = (time.perf_counter_ns() - begin_ns) / 1e9
        cpu_before = time.process_time()
        times = {"seconds": round(elapsed, 6), "own_cpu_seconds": round(cpu_before, 6)}
        print(json.dumps({**times, **row}), flush=True)
        # Sleeps until the next reading, or returns at once when the worker ends.
        if poll.poll(1000 * max(seconds, cost / MOST_CPU_SHARE)):
            return
        row = watcher.read()
        cost = time.process_time() - cpu_before


class Watcher:
    def __init__(
        self,
        worker: int,
        boards: dict[str, Board],
        root: Path = Path("/"),
        *,
        journal: str = "",
    ) -> None:
        self._tree = ProcessTree(worker, root / "proc", journal=journal)
        self._boards = boards
        self._root = root
        # As the worker sees it: its network namespace may differ from the monitor's.
        self._network = root / "proc" / str(worker) / "net" / "dev"
        self._disks = {path.parent.name for path in root.glob("sys/block/*/device")}

    def read(self) -> dict[str, float]:
        row = self._tree.read()
        row |= machine_cpu(self._root)
        row |= network_bytes(self._network)
        row |= disk_bytes(self._root, self._disks)
        for name, board in self._boards.items():
            reading = gpu.read_board_in_full(board.nvml, board.handle)
            row |= {f"{name}.{column}": value for column, value in reading.items()}
        return row


def missing_columns(row: dict[str, float], device: str) -> list[str]:
    """Columns that this system does not report."""
    expected = [*TREE_COLUMNS, *MACHINE_COLUMNS]
    if device != "cpu":
        board_names = sorted({name.partition(".")[0] for name in row if "." in name})
        for board in board_names or ["gpu"]:
            expected += [f"{board}.{column}" for column in BOARD_COLUMNS]
    return [name for name in expected if name not in row]


def find_boards(device: str, nvml: Any | None) -> dict[str, Board]:
    """The board of `cuda:N`, or for plain `cuda` all boards that the process may see."""
    if nvml is None or device == "cpu":
        return {}
    if device == "cuda":
        indices = range(gpu.visible_count(nvml))
    else:
        index = int(device.removeprefix("cuda:"))
        indices = range(index, index + 1)
    boards = {}
    for index in indices:
        handle = gpu.find_handle(nvml, index)
        if handle is not None:
            boards[f"gpu{index}"] = Board(nvml, handle)
    return boards


def machine_cpu(root: Path) -> dict[str, float]:
    """Busy CPU time of the machine: user, nice, system, interrupts; neither idle nor stolen."""
    with suppress(OSError, ValueError, IndexError):
        first_line = (root / "proc/stat").read_text().splitlines()[0]
        ticks = [int(field) for field in first_line.split()[1:8]]
        # The kernel counts time waiting for a disk as idle time of its own kind.
        idle, waiting_for_disk = ticks[3], ticks[4]
        busy = sum(ticks) - idle - waiting_for_disk
        return {"machine_cpu_seconds": busy * TICK_SECONDS}
    return {}


def network_bytes(path: Path) -> dict[str, float]:
    """Of all interfaces and all senders. What never left the machine is counted separately."""
    received = sent = loopback = 0
    with suppress(OSError, ValueError, IndexError):
        # Two lines of headings come first.
        for line in path.read_text().splitlines()[2:]:
            name, _, rest = line.partition(":")
            fields = rest.split()
            if name.strip() == "lo":
                loopback += int(fields[0])
            else:
                received += int(fields[0])
                sent += int(fields[8])
        return {
            "network_received_bytes": received,
            "network_sent_bytes": sent,
            "loopback_bytes": loopback,
        }
    return {}


def disk_bytes(root: Path, disks: set[str]) -> dict[str, float]:
    """Of these disks together, by all processes.

    Partitions and mapped devices are not among them: their bytes are a disk's bytes."""
    read_sectors = written_sectors = 0
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/diskstats").read_text().splitlines():
            fields = line.split()
            if fields[2] in disks:
                read_sectors += int(fields[5])
                written_sectors += int(fields[9])
        return {
            "machine_disk_read_bytes": SECTOR_BYTES * read_sectors,
            "machine_disk_written_bytes": SECTOR_BYTES * written_sectors,
        }
    return {}


if __name__ == "__main__":
    sys.exit(main())
