from __future__ import annotations

import weakref

import numpy as np
import pytest

from steptime.engine.timing import host_loop, latency_loop, stamp_cost_ns, stream_loop


def views(length: int) -> memoryview:
    return memoryview(bytearray(8 * length)).cast("q")


class Output:
    pass


@pytest.mark.parametrize("group", [1, 4])
def test_host_loop_stamps_once_per_group(fakes, group):
    device, view = fakes.Host(1000), views(5)
    host_loop(device.step, device.clock, group)(view, range(5))
    assert device.steps == 5 * group
    assert np.diff(view).tolist() == [1000 * group + 50] * 4


def test_stream_loop_records_event_at_start_and_after_each_sample(fakes):
    device, view = fakes.Device(10_000), views(3)
    events = stream_loop(device.step, device.clock, 2, device.timer.record)(view, range(3))
    assert len(events) == 4
    assert device.timer.elapsed_ns(events[1], events[2]) == 20_000


def test_stream_loop_does_not_wait(fakes):
    device, view = fakes.Device(1_000_000), views(3)
    stream_loop(device.step, device.clock, 1, device.timer.record)(view, range(3))
    assert view[2] < device.busy_until


def test_latency_loop_waits_for_every_step(fakes):
    device, view = fakes.Device(10_000, dispatch_ns=500), views(3)
    latency_loop(device.step, device.clock, 2, device.wait)(view, range(3))
    assert np.diff(view).tolist() == [2 * 10_500 + 50] * 2


def test_loop_keeps_output_alive_until_its_stamp(fakes):
    alive, seen = weakref.WeakSet(), []

    def step():
        seen.append(len(alive))
        output = Output()
        alive.add(output)
        return output

    def clock():
        seen.append(len(alive))
        return 0

    host_loop(step, clock, 1)(views(3), range(3))
    assert seen == [0, 1] * 3


def test_stamp_cost_is_the_clock_s_cost(fakes):
    assert stamp_cost_ns(fakes.Clock()) == 50
