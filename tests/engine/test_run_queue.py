from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from steptime.engine.run_queue import (
    MOST_THREADS,
    CpuUse,
    RunQueue,
    others_share,
    read_cpu_use,
)


class FakeTasks:
    """A `/proc/self/task` with threads that start, wait and end."""

    def __init__(self, root):
        self.root = root
        self.folder = root / "proc/self/task"
        self.folder.mkdir(parents=True)

    def set(self, name, queue_ns, cpu_ns=100):
        file = self.folder / str(name) / "schedstat"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{cpu_ns} {queue_ns} 3\n")

    def end(self, name):
        """An open file of a thread that has ended cannot be read any more."""
        os.truncate(self.folder / str(name) / "schedstat", 0)
        shutil.rmtree(self.folder / str(name))


@pytest.fixture
def tasks(tmp_path):
    return FakeTasks(tmp_path)


def test_run_queue_adds_the_longest_wait_of_each_reading(tasks):
    tasks.set(1, 1000)
    tasks.set(2, 5000)
    queue = RunQueue(tasks.root)
    assert queue.read() == 0
    tasks.set(1, 1300)
    tasks.set(2, 5200)
    assert queue.read() == 300
    tasks.set(2, 5900)
    assert queue.read() == 300 + 700


def test_run_queue_sees_threads_behind_a_sleeping_main_thread(tasks):
    tasks.set(1, 0)
    tasks.set(2, 0)
    queue = RunQueue(tasks.root)
    tasks.set(2, 800)
    assert queue.read() == 800


def test_run_queue_counts_a_new_thread_from_its_start(tasks):
    tasks.set(1, 0)
    queue = RunQueue(tasks.root)
    tasks.set(2, 250)
    assert queue.read() == 250
    tasks.set(2, 300)
    assert queue.read() == 300


def test_run_queue_never_falls_when_threads_end(tasks):
    tasks.set(1, 0)
    tasks.set(2, 0)
    queue = RunQueue(tasks.root)
    tasks.set(2, 900)
    assert queue.read() == 900
    tasks.end(2)
    assert queue.read() == 900
    tasks.set(1, 10)
    assert queue.read() == 910


def test_run_queue_takes_a_reused_number_for_a_new_thread(tasks):
    tasks.set(1, 0)
    tasks.set(2, 700)
    queue = RunQueue(tasks.root)
    tasks.end(2)
    queue.read()
    tasks.set(2, 40)
    tasks.set(3, 0)
    assert queue.read() == 40


def test_run_queue_reads_the_busiest_of_many_threads(tasks):
    for name in range(100):
        tasks.set(name, 50, cpu_ns=name)
    queue = RunQueue(tasks.root)
    assert len(queue._threads) == MOST_THREADS
    tasks.set(3, 10_000)
    tasks.set(99, 170)
    assert queue.read() == 120
    tasks.set(3, 10_000, cpu_ns=1000)
    queue.choose_threads()
    tasks.set(3, 10_400, cpu_ns=1000)
    assert queue.read() == 120 + 400


def test_run_queue_does_not_count_a_skipped_thread_as_new(tasks):
    for name in range(40):
        tasks.set(name, 5000, cpu_ns=name)
    queue = RunQueue(tasks.root)
    for name in range(35, 40):
        tasks.end(name)
    assert queue.read() == 0


def test_run_queue_is_absent_without_scheduler_statistics(tmp_path):
    (tmp_path / "proc/self/task/1").mkdir(parents=True)
    queue = RunQueue(tmp_path)
    assert queue.is_absent and queue.read() is None


def test_run_queue_keeps_no_file_open_after_close(tasks):
    before = os.listdir("/proc/self/fd")
    tasks.set(1, 0)
    queue = RunQueue(tasks.root)
    queue.close()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.live
def test_run_queue_shows_a_busy_neighbour_of_another_thread():
    """The main thread sleeps, as it does in JAX; the thread that computes shares its CPU."""
    queue = RunQueue()
    if queue.is_absent:
        pytest.skip("this kernel does not report the run-queue delay")
    end = time.monotonic() + 1.0

    cpu = min(os.sched_getaffinity(0))
    hog = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"

    def compute():
        os.sched_setaffinity(0, {cpu})
        while time.monotonic() < end:
            pass

    with subprocess.Popen([sys.executable, "-c", hog]) as neighbour:
        thread = threading.Thread(target=compute)
        thread.start()
        queue.read()
        thread.join(0.8)
        waited_ns = queue.read()
        thread.join()
        neighbour.kill()
    queue.close()
    assert waited_ns > 0.05 * 0.8e9


def test_others_share_is_what_was_neither_idle_nor_this_process():
    first = CpuUse(cpus=2, now_ns=0, idle_ns=1000, process_ns=200)
    assert others_share(first, CpuUse(2, now_ns=1000, idle_ns=1300, process_ns=1400)) == 0.5
    assert others_share(first, CpuUse(2, now_ns=1000, idle_ns=1900, process_ns=1400)) == 0.0
    assert others_share(None, first) is None


def test_read_cpu_use_counts_usable_cpus_only(tmp_path):
    cpu = min(os.sched_getaffinity(0))
    allowed = os.sched_getaffinity(0)
    file = tmp_path / "proc/stat"
    file.parent.mkdir()
    file.write_text(f"cpu  9 9 9 9 9 9 9 9 9 9\ncpu{cpu} 1 2 3 40 5 6 7 8 0 0\ncpu999 1 1 1 1\n")
    os.sched_setaffinity(0, {cpu})
    try:
        ticks = read_cpu_use(tmp_path).idle_ns * os.sysconf("SC_CLK_TCK") // 10**9
        assert ticks == 40 + 5 + 8
        file.write_text(f"cpu{cpu} 0 0 0 0 0 0 0 0 0 0\n")
        assert read_cpu_use(tmp_path) is None
    finally:
        os.sched_setaffinity(0, allowed)


def test_read_cpu_use_is_none_if_the_system_does_not_count(tmp_path):
    assert read_cpu_use(tmp_path) is None


@pytest.mark.live
def test_others_share_shows_a_busy_neighbour():
    cpu = min(os.sched_getaffinity(0))
    allowed = os.sched_getaffinity(0)
    hog = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    os.sched_setaffinity(0, {cpu})
    try:
        with subprocess.Popen([sys.executable, "-c", hog]) as neighbour:
            first = read_cpu_use()
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                pass
            share = others_share(first, read_cpu_use())
            neighbour.kill()
    finally:
        os.sched_setaffinity(0, allowed)
    if share is None:
        pytest.skip("this system does not count idle time")
    assert share > 0.1
