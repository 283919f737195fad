"""The run queue: how long the threads of this process were ready to run but did not run.

Linux counts this for each thread in `/proc/self/task/ID/schedstat`. In JAX, TensorFlow and ONNX
Runtime the main thread sleeps while others compute, so all threads are read. Their waits are not
added up: two threads that wait at the same moment delay a step once."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# A file takes 1 to 2 µs, so a reading stays below 0.1 % of a block of 50 ms.
MOST_THREADS = 16


@dataclass(slots=True)
class Thread:
    """An open file, and the wait that it reported at the last reading."""

    file: int
    queue_ns: int


class RunQueue:
    """Adds up, from reading to reading, the wait of the thread that waited longest meanwhile."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._tasks = root / "proc/self/task"
        self._folder = _open_folder(self._tasks)
        self._threads: dict[str, Thread] = {}
        # Names in the last listing: what is not among them has started since.
        self._listed: set[str] = set()
        self._links = 0
        self._total_ns = 0
        self.choose_threads()
        # A kernel without scheduler statistics has the folder, but not the files.
        if not self._threads:
            self.close()

    @property
    def is_absent(self) -> bool:
        return self._folder is None

    def close(self) -> None:
        for thread in self._threads.values():
            os.close(thread.file)
        self._threads = {}
        if self._folder is not None:
            os.close(self._folder)
        self._folder = None

    def read(self) -> int | None:
        """Nanoseconds since the first reading; None if the system does not count them."""
        if self._folder is None:
            return None
        longest_ns = 0
        ended = []
        for name, thread in self._threads.items():
            try:
                queue_ns = int(os.pread(thread.file, 80, 0).split()[1])
            except (OSError, IndexError):
                ended.append(name)
                continue
            wait_ns = queue_ns - thread.queue_ns
            if wait_ns > longest_ns:
                longest_ns = wait_ns
            thread.queue_ns = queue_ns
        for name in ended:
            self._drop(name)
            self._listed.discard(name)
        # The folder has one link for each thread. Listing it takes ten times as long.
        if ended or os.fstat(self._folder).st_nlink != self._links:
            longest_ns = max(longest_ns, self._add_new_threads())
        self._total_ns += longest_ns
        return self._total_ns

    def choose_threads(self) -> None:
        """From now on read the threads that have used the most CPU time. Call it off the clock."""
        if self._folder is None:
            return
        for name in self._list_threads():
            self._add(name)
        by_cpu_time = sorted(self._threads, key=lambda name: -_cpu_ns(self._threads[name]))
        for name in by_cpu_time[MOST_THREADS:]:
            self._drop(name)

    def _add_new_threads(self) -> int:
        """The longest wait of a thread that has started since the last listing."""
        before = self._listed
        waits_ns = [0]
        for name in self._list_threads() - before:
            if len(self._threads) < MOST_THREADS:
                waits_ns.append(self._add(name))
        return max(waits_ns)

    def _list_threads(self) -> set[str]:
        assert self._folder is not None
        self._links = os.fstat(self._folder).st_nlink
        self._listed = set(os.listdir(self._tasks))
        return self._listed

    def _add(self, name: str) -> int:
        """Open a thread's file, unless it is open or the thread has ended, and return its wait."""
        thread = self._threads.get(name) or _open_thread(self._tasks / name)
        if thread is None:
            return 0
        self._threads[name] = thread
        return thread.queue_ns

    def _drop(self, name: str) -> None:
        os.close(self._threads.pop(name).file)


def _open_folder(path: Path) -> int | None:
    with suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    return None


def _open_thread(folder: Path) -> Thread | None:
    """None if the thread has ended, or if the kernel does not count."""
    try:
        file = os.open(folder / "schedstat", os.O_RDONLY)
    except OSError:
        return None
    with suppress(OSError, IndexError):
        return Thread(file, int(os.pread(file, 80, 0).split()[1]))
    os.close(file)
    return None


def _cpu_ns(thread: Thread) -> int:
    """0 if the thread has ended."""
    with suppress(OSError, IndexError):
        return int(os.pread(thread.file, 80, 0).split()[0])
    return 0


@dataclass(frozen=True)
class CpuUse:
    """A moment's counters of the CPUs on which this process may run."""

    cpus: int
    now_ns: int
    idle_ns: int  # of these CPUs; a hypervisor's steal counts as idle
    process_ns: int  # CPU time of this process


def read_cpu_use(root: Path = Path("/")) -> CpuUse | None:
    """None if the system does not count. Once per process: a machine may have many CPUs.

    Idle time is exact, unlike user and system time, which most kernels sample."""
    cpus = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    idle_ticks = 0
    count = 0
    with suppress(OSError, IndexError, ValueError):
        for line in (root / "proc/stat").read_text().splitlines():
            name, *ticks = line.split()
            if name in cpus:
                idle_ticks += int(ticks[3]) + int(ticks[4]) + int(ticks[7])
                count += 1
    if count < len(cpus) or not idle_ticks:
        return None
    idle_ns = idle_ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return CpuUse(count, time.perf_counter_ns(), idle_ns, time.process_time_ns())


def others_share(first: CpuUse | None, last: CpuUse | None) -> float | None:
    """CPUs that other processes used on average, of those on which this process may run."""
    if first is None or last is None or first.cpus != last.cpus:
        return None
    elapsed_ns = last.now_ns - first.now_ns
    idle_ns = last.idle_ns - first.idle_ns
    process_ns = last.process_ns - first.process_ns
    others_ns = first.cpus * elapsed_ns - idle_ns - process_ns
    return max(0, others_ns) / max(1, elapsed_ns)
