from __future__ import annotations

import gc
import mmap
import os
import subprocess
import sys
import time

import pytest

from steptime.engine.gpu import find_gpu
from steptime.engine.recorder import Recorder, make_block
from steptime.engine.timing import host_loop, stream_loop


@pytest.fixture
def recording():
    """Started recorders, closed again at the end: they watch the garbage collector."""
    started = []

    def start(program, loop, clock, gpu=None) -> Recorder:
        recorder = Recorder(program, loop, clock, gpu)
        recorder.start()
        started.append(recorder)
        return recorder

    yield start
    for recorder in started:
        recorder.close()


@pytest.fixture
def on_host(recording):
    return lambda program: recording(
        program, host_loop(program.step, program.clock, 1), program.clock
    )


@pytest.fixture
def on_device(recording):
    def start(program, gpu=None):
        return recording(
            program,
            stream_loop(program.step, program.clock, 1, program.timer.record),
            program.clock,
            gpu,
        )

    return start


def test_recorder_samples_are_contiguous_over_all_blocks(fakes, on_host):
    recorder = on_host(fakes.Host(1000))
    for count in (3, 5, 2):
        recorder.block(count)
    stamps = recorder.stamps()
    assert len(stamps) == 11 and recorder.times_ns().sum() == stamps[-1] - stamps[0]
    assert sum(make_block(entry).host_ns for entry in recorder.entries) == stamps[-1] - stamps[0]


def test_recorder_adds_time_between_blocks_to_next_sample(fakes, on_host):
    program = fakes.Host(1000)
    recorder = on_host(program)
    recorder.block(2)
    program.clock.now += 70_000
    recorder.block(2)
    assert recorder.times_ns()[2] > 70_000


def test_recorder_pause_stops_the_clock(fakes, on_host):
    program = fakes.Host(1000)
    recorder = on_host(program)
    recorder.block(2)
    recorder.pause()
    program.clock.now += 5_000_000
    block = make_block(recorder.block(2))
    assert recorder.times_ns().max() < 2000 and block.idle_ns > 5_000_000
    assert recorder.seconds * 1e9 == pytest.approx(recorder.stamps()[-1] - recorder.stamps()[0])


def test_recorder_block_continues_until_long_enough(fakes, on_host):
    recorder = on_host(fakes.Host(1000))
    entry = recorder.block(10, least_ns=15_000)
    assert entry.last_ns - entry.first_ns >= 15_000 and entry.samples == recorder.samples == 15


def test_recorder_last_stamp_of_block_is_after_the_wait(fakes, on_device):
    device = fakes.Device(100_000, dispatch_ns=1000)
    recorder = on_device(device)
    block = make_block(recorder.block(10))
    assert recorder.stamps()[-1] >= device.busy_until
    assert block.dispatch_ns < 0.1 * block.host_ns


def test_recorder_device_intervals_sum_to_host_block(fakes, on_device):
    recorder = on_device(fakes.Device(100_000))
    entry = recorder.block(10)
    assert recorder.device_ns()[1:] == [100_000] * 9
    assert entry.device_ns == pytest.approx(entry.stretch_ns, rel=0.001)


def test_recorder_lead_is_first_dispatch(fakes, on_device):
    recorder = on_device(fakes.Device(100_000, dispatch_ns=1000))
    assert recorder.block(1).lead_ns == recorder.block(5).lead_ns < 1500


def test_recorder_counts_compilations_per_block(fakes, on_host):
    program = fakes.Host(1000)
    program.compiles_at = {6}
    recorder = on_host(program)
    assert [recorder.block(5).compilations for _ in range(3)] == [0, 1, 0]


def test_recorder_times_garbage_collection_in_its_block(fakes, on_host):
    program = fakes.Host(lambda number: gc.collect() if number == 7 else 1000)
    recorder = on_host(program)
    assert [make_block(recorder.block(5)).gc_ns > 0 for _ in range(3)] == [False, True, False]


def test_recorder_reads_throttling_at_block_ends(fakes, on_device):
    device, nvml = fakes.Device(100_000), fakes.Nvml()
    recorder = on_device(device, find_gpu("cuda:0", nvml, device.clock))
    nvml.reasons = 0x20
    blocks = [make_block(recorder.block(500)) for _ in range(3)]
    assert [block.gpu["reasons"] for block in blocks] == [32.0] * 3


def touch_new_memory():
    """What an allocator does that gives memory back after every step and asks for it again."""
    with mmap.mmap(-1, 1 << 22) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        memory[:: mmap.PAGESIZE] = bytes(len(memory) // mmap.PAGESIZE)


def test_recorder_shows_new_memory_as_faults(recording):
    program = type(
        "Program", (), {"timer": None, "compilations": lambda self: 0, "wait": lambda self: None}
    )()
    recorder = recording(
        program, host_loop(touch_new_memory, time.perf_counter_ns, 1), time.perf_counter_ns
    )
    assert make_block(recorder.block(10)).faults / 10 >= (1 << 22) / mmap.PAGESIZE


@pytest.mark.live
def test_recorder_shows_busy_neighbour_as_run_queue_delay(fakes, recording):
    program = type(
        "Program", (), {"timer": None, "compilations": lambda self: 0, "wait": lambda self: None}
    )()
    recorder = recording(
        program, host_loop(fakes.spin(1_000_000), time.perf_counter_ns, 1), time.perf_counter_ns
    )
    if "run queue" in recorder.channels.absent:
        pytest.skip("this kernel does not report the run-queue delay")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
            blocks = [make_block(recorder.block(50, 50_000_000)) for _ in range(20)]
            neighbour.kill()
    finally:
        os.sched_setaffinity(0, allowed)
    assert sum(block.queue_ns > 0.05 * block.host_ns for block in blocks) >= 19
