"""What else happened while steps ran: CPU time, faults, switches, run queue, pressure, swapping, garbage collection.

Read at block ends only. Files stay open and are read in place, so that all of it costs a few microseconds.
The run-queue delay is the main thread's: it dispatches every step and takes part in most, and one file is read instead
of one per thread. What a system lacks is None, and its name is in `absent`."""

from __future__ import annotations

import gc
import os
import resource
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from steptime.engine.clock import Clock


class Reading(NamedTuple):
    """Counters since the process began, or since the machine did."""

    cpu_ns: int
    faults: int
    major_faults: int
    switches: int
    involuntary_switches: int
    queue_ns: int | None
    pressure_ns: int | None
    swap_ins: int | None
    gc_ns: int


class Channels:
    """Use as a context: it watches the garbage collector and holds files open."""

    def __init__(self, clock: Clock = time.perf_counter_ns, root: Path = Path("/")) -> None:
        self._clock = clock
        self._root = root
        self._queue = _open(root / "proc/self/schedstat")
        self._pressure = _open(root / "proc/pressure/cpu")
        self._major_faults = -1
        self._swap_ins: int | None = None
        self._gc_ns = self._gc_start_ns = 0

    def __enter__(self) -> Channels:
        gc.callbacks.append(self._collecting)
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(ValueError):
            gc.callbacks.remove(self._collecting)
        for file in (self._queue, self._pressure):
            if file is not None:
                os.close(file)
        self._queue = self._pressure = None

    @property
    def absent(self) -> list[str]:
        files = {
            "run queue": self._queue,
            "CPU pressure": self._pressure,
            "swap-ins": self._swap_ins,
        }
        return [name for name, value in files.items() if value is None]

    def read(self) -> Reading:
        use = resource.getrusage(resource.RUSAGE_SELF)
        if use.ru_majflt != self._major_faults:
            # What this process gets back from swap is a major fault: without one there is nothing to look for,
            # and the file that tells is the only dear one.
            self._major_faults, self._swap_ins = use.ru_majflt, swap_ins(self._root)
        return Reading(
            time.process_time_ns(),
            use.ru_minflt,
            use.ru_majflt,
            use.ru_nvcsw,
            use.ru_nivcsw,
            self._queue_ns(),
            self._pressure_ns(),
            self._swap_ins,
            self._gc_ns,
        )

    def _queue_ns(self) -> int | None:
        return None if self._queue is None else int(os.pread(self._queue, 80, 0).split()[1])

    def _pressure_ns(self) -> int | None:
        """The first line's running total, in microseconds: `some avg10=… avg60=… avg300=… total=N`."""
        if self._pressure is None:
            return None
        line = os.pread(self._pressure, 120, 0).partition(b"\n")[0]
        return 1000 * int(line.rpartition(b"=")[2])

    def _collecting(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._gc_start_ns = self._clock()
        else:
            self._gc_ns += self._clock() - self._gc_start_ns


def difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first


def swap_ins(root: Path = Path("/")) -> int | None:
    """Pages that the machine has read back from swap since it started."""
    with suppress(OSError):
        for line in (root / "proc/vmstat").read_bytes().splitlines():
            if line.startswith(b"pswpin "):
                return int(line.split()[1])
    return None


def cpu_ticks(root: Path = Path("/")) -> tuple[int, int] | None:
    """Stolen by the hypervisor, and all, over every CPU since the machine started; `guest` is already in `user`."""
    with suppress(OSError, IndexError, ValueError):
        ticks = [
            int(word) for word in (root / "proc/stat").read_text().splitlines()[0].split()[1:9]
        ]
        return ticks[7], sum(ticks)
    return None


def steal_share(first: tuple[int, int] | None, last: tuple[int, int] | None) -> float | None:
    if first is None or last is None:
        return None
    stolen, total = last[0] - first[0], last[1] - first[1]
    return stolen / total if total > 0 else 0.0


def _open(path: Path) -> int | None:
    """None where the kernel has no such file, or has it and refuses to fill it (pressure can be switched off)."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        if os.pread(file, 1, 0):
            return file
    except OSError:
        pass
    os.close(file)
    return None
