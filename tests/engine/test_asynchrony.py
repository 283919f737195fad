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
def test_violates_beyond_one_percent_and_fifty_microseconds(difference_ns, block_ns, wrong):
    assert violates(difference_ns, block_ns) is wrong


def test_agreement_separates_one_disturbed_block_from_all():
    shares = agreement("closure", [(0, 10**8)] * 3 + [(10**7, 10**8)])
    assert shares == {"closure": 0.1, "closure_median": 0.0, "closure_violations": 0.25}


def test_agreement_ignores_blocks_without_time():
    assert agreement("closure", [(0, 0)]) == {}


def test_forced_share_is_zero_for_synchronous_program(fakes):
    device = fakes.Host(100_000)
    share, steps = forced_share(device, device.clock, 10)
    assert share == 0.0 and steps == device.steps


def test_forced_share_is_zero_if_wait_works(fakes):
    device = fakes.Device(100_000)
    assert forced_share(device, device.clock, 10)[0] == 0.0


def test_forced_share_is_large_if_wait_returns_early(fakes):
    device = fakes.Device(100_000)
    device.waits = False
    share, steps = forced_share(device, device.clock, 10)
    assert share > 10 and steps == device.steps


def test_forced_share_is_none_if_steps_return_nothing(fakes):
    device = fakes.Host(1000)
    step = device.step
    device.step = lambda: step() and None
    share, steps = forced_share(device, device.clock, 5)
    assert share is None and steps == device.steps


def test_force_reads_arrays_in_nested_outputs():
    assert force({"loss": [np.ones(2), (None,)]})
    assert not force([None, {}])


def test_force_skips_what_numpy_cannot_read():
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("no such number")

    assert not force(Foreign())
