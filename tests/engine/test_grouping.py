from __future__ import annotations

import pytest

from steptime.core.protocol import Protocol
from steptime.engine.grouping import event_cost_ns, group_size, least_device_ns, least_host_ns


@pytest.mark.parametrize(
    ("step_ns", "group"), [(20_000, 1), (19_999, 2), (10_000, 2), (64, 512), (1e9, 1)]
)
def test_the_group_is_the_smallest_power_of_two_that_is_long_enough(step_ns, group):
    assert group_size(step_ns, 20_000) == group


def test_a_slow_clock_asks_for_longer_samples():
    assert least_host_ns(Protocol(), clock_cost_ns=50) == 20_000
    assert least_host_ns(Protocol(), clock_cost_ns=1_000) == 200_000


def test_a_dear_event_may_take_a_thousandth_of_the_sample():
    assert least_device_ns(Protocol(), event_cost_ns=100) == 200_000
    assert least_device_ns(Protocol(), event_cost_ns=11_600) == pytest.approx(11_600_000)


def test_the_cost_of_an_event_is_the_hosts(fakes):
    device = fakes.Device(0, event_cost_ns=11_600)
    assert event_cost_ns(device.timer.record, device.clock) == 11_650
