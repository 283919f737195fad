from __future__ import annotations

import gc
import mmap

import pytest

from steptime.engine.channels import (
    Channels,
    cpu_ticks,
    difference,
    steal_share,
    swap_ins,
)


@pytest.fixture
def root(tmp_path):
    """A system that reports everything."""
    for path, text in {
        "proc/self/task/11/schedstat": "100 7000 3\n",
        "proc/pressure/cpu": (
            "some avg10=1.68 avg60=1.62 avg300=0.51 total=122\nfull avg10=0.00 total=9\n"
        ),
        "proc/vmstat": "nr_free 5\npswpin 42\npswpout 43\n",
        "proc/stat": "cpu  10 0 20 60 0 0 0 10 5 0\ncpu0 1 2 3\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_channels_read_run_queue_pressure_and_swap(root):
    with Channels(root=root) as channels:
        reading = channels.read()
    assert (reading.queue_ns, reading.pressure_ns, reading.swap_ins) == (0, 122_000, 42)


def test_channels_read_files_again_each_time(root):
    with Channels(root=root) as channels:
        channels.read()
        (root / "proc/self/task/11/schedstat").write_text("100 9000 3\n")
        assert channels.read().queue_ns == 2000


def test_channels_name_what_the_system_lacks(tmp_path):
    with Channels(root=tmp_path) as channels:
        reading = channels.read()
        assert channels.absent == ["run queue", "CPU pressure", "swap-ins"]
    assert (reading.queue_ns, reading.pressure_ns, reading.swap_ins) == (None, None, None)


def test_channels_read_swap_only_after_major_fault(root):
    with Channels(root=root) as channels:
        channels.read()
        (root / "proc/vmstat").write_text("pswpin 50\n")
        assert channels.read().swap_ins == 42
        channels._major_faults -= 1
        assert channels.read().swap_ins == 50


def test_channels_show_new_memory_as_faults():
    with (
        Channels() as channels,
        mmap.mmap(-1, 1 << 24) as memory,
    ):  # never seen before, unlike an allocator's
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        before = channels.read()
        memory[:: mmap.PAGESIZE] = bytes(len(memory) // mmap.PAGESIZE)
        assert channels.read().faults - before.faults >= (1 << 24) // mmap.PAGESIZE


def test_channels_show_work_as_cpu_time(fakes):
    step = fakes.spin(1_000_000)
    with Channels() as channels:
        before = channels.read()
        for _ in range(20):
            step()
        assert channels.read().cpu_ns - before.cpu_ns > 5_000_000


def test_channels_time_garbage_collection_while_open(fakes):
    clock = fakes.Clock()
    with Channels(clock) as channels:
        gc.collect()
        assert channels.read().gc_ns == 50
    gc.collect()
    assert channels._gc_ns == 50


def test_steal_share_counts_guest_time_once(root):
    first = cpu_ticks(root)
    assert first == (10, 100)
    assert steal_share(first, (15, 200)) == 0.05


def test_steal_share_is_none_without_kernel_data(tmp_path):
    assert cpu_ticks(tmp_path) is None and steal_share(None, (1, 2)) is None


def test_steal_share_is_zero_without_elapsed_time():
    assert steal_share((3, 100), (3, 100)) == 0.0


def test_difference_is_none_if_a_value_is_none():
    assert difference(None, 3) is None and difference(1, 3) == 2


def test_swap_ins_is_none_without_the_file(tmp_path):
    assert swap_ins(tmp_path) is None


def test_channels_read_does_not_reopen_files(root):
    """Opening would be the most expensive part; benchmarks/overhead.py measures a reading."""
    with Channels(root=root) as channels:
        for path in ("proc/self/task/11/schedstat", "proc/pressure/cpu"):
            (root / path).unlink()
        reading = channels.read()
    assert (reading.queue_ns, reading.pressure_ns) == (0, 122_000)
