"""Side channels: what else happened while steps ran.

CPU time, page faults, context switches, run queue, CPU pressure, swapping, garbage collection.
They are read at block ends only. Files stay open and are read in place, so a reading costs some
ten microseconds. A value that the system does not report is None, and `absent` names it."""

from __future__ import annotations

import gc
import os
import resource
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from steptime.engine.clock import Clock
from steptime.engine.run_queue import RunQueue


class Reading(NamedTuple):
    """Counters since the process started, or since boot."""

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
    """Use as a context manager: it hooks into the garbage collector and holds files open."""

    def __init__(self, clock: Clock = time.perf_counter_ns, root: Path = Path("/")) -> None:
        self._clock = clock
        self._root = root
        self._queue = RunQueue(root)
        self._pressure = _open(root / "proc/pressure/cpu")
        self._major_faults = -1
        self._swap_ins: int | None = None
        self._gc_ns = 0
        self._gc_start_ns = 0

    def __enter__(self) -> Channels:
        gc.callbacks.append(self._on_collection)
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(ValueError):
            gc.callbacks.remove(self._on_collection)
        self._queue.close()
        if self._pressure is not None:
            os.close(self._pressure)
        self._pressure = None

    @property
    def absent(self) -> list[str]:
        sources = {"CPU pressure": self._pressure, "swap-ins": self._swap_ins}
        names = [name for name, source in sources.items() if source is None]
        return ["run queue", *names] if self._queue.is_absent else names

    def prepare(self) -> None:
        """Before the clock starts or goes on: frameworks start threads while they warm up."""
        self._queue.choose_threads()

    def read(self) -> Reading:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        # A page that this process gets back from swap is a major fault. Without a new one the
        # counter is not read again: its file is the only expensive one.
        if usage.ru_majflt != self._major_faults:
            self._major_faults = usage.ru_majflt
            self._swap_ins = swap_ins(self._root)
        return Reading(
            cpu_ns=time.process_time_ns(),
            faults=usage.ru_minflt,
            major_faults=usage.ru_majflt,
            switches=usage.ru_nvcsw,
            involuntary_switches=usage.ru_nivcsw,
            queue_ns=self._queue.read(),
            pressure_ns=self._pressure_ns(),
            swap_ins=self._swap_ins,
            gc_ns=self._gc_ns,
        )

    def _pressure_ns(self) -> int | None:
        """Microseconds from the first line: `some avg10=… avg60=… avg300=… total=N`."""
        if self._pressure is None:
            return None
        line = os.pread(self._pressure, 120, 0).partition(b"\n")[0]
        return 1000 * int(line.rpartition(b"=")[2])

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._gc_start_ns = self._clock()
        else:
            self._gc_ns += self._clock() - self._gc_start_ns


def difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first


def swap_ins(root: Path = Path("/")) -> int | None:
    """Pages that the machine has read back from swap since boot."""
    with suppress(OSError):
        for line in (root / "proc/vmstat").read_bytes().splitlines():
            if line.startswith(b"pswpin "):
                return int(line.split()[1])
    return None


def cpu_ticks(root: Path = Path("/")) -> tuple[int, int] | None:
    """Ticks stolen by the hypervisor, and all ticks, of all CPUs since boot.

    The fields after the eighth, `guest` and `guest_nice`, are already part of `user`."""
    with suppress(OSError, IndexError, ValueError):
        first_line = (root / "proc/stat").read_text().splitlines()[0]
        ticks = [int(field) for field in first_line.split()[1:9]]
        return ticks[7], sum(ticks)
    return None


def steal_share(first: tuple[int, int] | None, last: tuple[int, int] | None) -> float | None:
    if first is None or last is None:
        return None
    stolen = last[0] - first[0]
    total = last[1] - first[1]
    return stolen / total if total > 0 else 0.0


def _open(path: Path) -> int | None:
    """None if the kernel lacks the file or refuses to fill it: pressure can be switched off."""
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
