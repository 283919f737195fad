"""What else used a device while its peaks were measured. A peak under pressure is not a peak."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from steptime.core.format import percent
from steptime.core.measurement import THERMAL_REASONS
from steptime.engine import gpu
from steptime.engine.channels import cpu_ticks, steal_share

ROOT = Path("/")
# Shares of the time. Below these, the best of many short bursts is undisturbed. Tasks wait more
# often than for a result, because bursts on all CPUs let every daemon wait.
QUEUE = 0.10
WAITING = 0.25
STEAL = 0.05
# Of the readings of a GPU.
HOT = 0.01
BUSY = 0.05
READING_SECONDS = 0.2


@dataclass
class Pressure:
    """Shares of the time; None if the system does not report them."""

    # This process was ready to run and did not.
    queue: float | None = None
    # Some task waited for a CPU.
    waiting: float | None = None
    # The hypervisor ran something else.
    stolen: float | None = None
    # Of a GPU, before the first burst: its utilisation, and other processes on any board.
    busy: float | None = None
    other_processes: int | None = None
    # Readings of a GPU that slowed down for heat or by hardware.
    hot: float | None = None

    def to_dict(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def reasons(self) -> list[str]:
        """What was seen that makes a peak worthless; empty if nothing was."""
        reasons = []
        if (self.queue or 0) > QUEUE:
            reasons.append(
                f"the bursts waited for a CPU for {percent(self.queue or 0)} of the time"
            )
        if (self.waiting or 0) > WAITING:
            share = percent(self.waiting or 0)
            reasons.append(f"some task waited for a CPU for {share} of the time")
        if (self.stolen or 0) > STEAL:
            reasons.append(f"the hypervisor took {percent(self.stolen or 0)} of the CPU time")
        if self.other_processes:
            reasons.append(f"{self.other_processes} other processes use the GPU")
        if (self.busy or 0) > BUSY:
            reasons.append(f"the GPU was busy for {percent(self.busy or 0)} of the time before")
        if (self.hot or 0) > HOT:
            reasons.append(f"the GPU slowed down for heat in {percent(self.hot or 0)} of readings")
        return reasons


class Counters(NamedTuple):
    """Since the process started, or since boot."""

    wall_ns: int
    cpu_ns: int
    queue_ns: int | None
    waiting_ns: int | None
    ticks: tuple[int, int] | None


def read_counters(root: Path = ROOT) -> Counters:
    cpu_ns, queue_ns = _thread_times(root)
    return Counters(
        wall_ns=time.perf_counter_ns(),
        cpu_ns=cpu_ns,
        queue_ns=queue_ns,
        waiting_ns=_waiting_ns(root),
        ticks=cpu_ticks(root),
    )


def cpu_pressure(first: Counters, last: Counters) -> Pressure:
    wall_ns = max(1, last.wall_ns - first.wall_ns)
    pressure = Pressure(stolen=steal_share(first.ticks, last.ticks))
    if first.queue_ns is not None and last.queue_ns is not None:
        queue_ns = last.queue_ns - first.queue_ns
        # Of the time in which threads wanted to run: those that sleep are in neither.
        pressure.queue = queue_ns / max(1, queue_ns + last.cpu_ns - first.cpu_ns)
    if first.waiting_ns is not None and last.waiting_ns is not None:
        pressure.waiting = (last.waiting_ns - first.waiting_ns) / wall_ns
    return pressure


def _thread_times(root: Path) -> tuple[int, int | None]:
    """Nanoseconds that all threads of this process ran, and that they waited for a CPU."""
    cpu_ns = 0
    queue_ns = 0
    seen = False
    for path in (root / "proc/self/task").glob("*/schedstat"):
        # A thread may end while it is read.
        with suppress(OSError, IndexError, ValueError):
            fields = path.read_text().split()
            cpu_ns += int(fields[0])
            queue_ns += int(fields[1])
            seen = True
    return cpu_ns, queue_ns if seen else None


def _waiting_ns(root: Path) -> int | None:
    """From the first line: `some avg10=… avg60=… avg300=… total=MICROSECONDS`."""
    with suppress(OSError, IndexError, ValueError):
        line = (root / "proc/pressure/cpu").read_text().splitlines()[0]
        return 1000 * int(line.rpartition("=")[2])
    return None


@dataclass
class Watch:
    """The pressure on one device, known when the block that it watches has ended."""

    pressure: Pressure = field(default_factory=Pressure)


@contextmanager
def watch_pressure(device: str, nvml: Any = None, root: Path = ROOT) -> Iterator[Watch]:
    watch = Watch()
    if device != "cpu":
        with _watch_board(device, nvml, watch):
            yield watch
        return
    first = read_counters(root)
    yield watch
    watch.pressure = cpu_pressure(first, read_counters(root))


def idle_pressure(device: str, nvml: Any) -> Pressure:
    """On a GPU that this process has not used yet: all that is seen is by others.

    Later, NVML may list this process in a container under another number."""
    index = int(device.partition(":")[2] or 0)
    handle = gpu.find_handle(nvml, index) if nvml else None
    if handle is None:
        return Pressure()
    board = gpu.read_board_in_full(nvml, handle)
    return Pressure(busy=board.get("utilisation"), other_processes=gpu.other_processes(nvml))


@contextmanager
def _watch_board(device: str, nvml: Any, watch: Watch) -> Iterator[None]:
    """Reads from another thread, because one measurement makes many bursts."""
    index = int(device.partition(":")[2] or 0)
    handle = gpu.find_handle(nvml, index) if nvml else None
    if handle is None:
        yield
        return
    readings: list[dict[str, float]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(READING_SECONDS):
            readings.append(gpu.read_board(nvml, handle))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()
    reasons = [int(reading["reasons"]) for reading in readings if "reasons" in reading]
    if reasons:
        hot = sum(bool(bits & THERMAL_REASONS) for bits in reasons)
        watch.pressure = Pressure(hot=hot / len(reasons))
