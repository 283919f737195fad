from __future__ import annotations

import numpy as np
import pytest

from steptime.engine.asynchrony import agreement, force, forced_share, violates


@pytest.mark.parametrize(
    ("difference_ns", "block_ns", "wrong"),
    [
        (49_000, 1_000_000, False),
        (51_000, 1_000_000, True),
        (400_000, 50_000_000, False),
        (600_000, 50_000_000, True),
    ],
)
def test_the_bound_is_one_percent_or_fifty_microseconds(difference_ns, block_ns, wrong):
    assert violates(difference_ns, block_ns) is wrong


def test_one_disturbed_block_is_told_from_all():
    told = agreement("closure", [(0, 10**8)] * 3 + [(10**7, 10**8)])
    assert told == {"closure": 0.1, "closure_median": 0.0, "closure_violations": 0.25}


def test_blocks_without_time_say_nothing():
    assert agreement("closure", [(0, 0)]) == {}


def test_a_program_that_is_done_when_it_says_so_leaves_nothing(fakes):
    device = fakes.Host(100_000)
    share, steps = forced_share(device, device.clock, 10)
    assert share == 0.0 and steps == device.steps


def test_an_asynchronous_program_that_waits_leaves_nothing(fakes):
    device = fakes.Device(100_000)
    assert forced_share(device, device.clock, 10)[0] == 0.0


def test_a_wait_that_does_not_wait_is_caught(fakes):
    device = fakes.Device(100_000)
    device.waits = False
    share, steps = forced_share(device, device.clock, 10)
    assert share > 10 and steps == device.steps


def test_steps_that_return_nothing_can_not_be_asked(fakes):
    device = fakes.Host(1000)
    step = device.step
    device.step = lambda: step() and None
    share, steps = forced_share(device, device.clock, 5)
    assert share is None and steps == device.steps


def test_arrays_are_found_in_nested_outputs():
    assert force({"loss": [np.ones(2), (None,)]})
    assert not force([None, {}])


def test_what_numpy_can_not_read_is_not_forced():
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("no such number")

    assert not force(Foreign())
