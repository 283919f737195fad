from __future__ import annotations

import pytest

from steptime.core.protocol import Protocol
from steptime.engine.grouping import event_cost_ns, group_size, least_device_ns, least_host_ns


@pytest.mark.parametrize(
    ("step_ns", "group"), [(20_000, 1), (19_999, 2), (10_000, 2), (64, 512), (1e9, 1)]
)
def test_group_size_is_smallest_power_of_two_that_is_long_enough(step_ns, group):
    assert group_size(step_ns, 20_000) == group


def test_least_host_ns_grows_with_clock_cost():
    assert least_host_ns(Protocol(), clock_cost_ns=50) == 20_000
    assert least_host_ns(Protocol(), clock_cost_ns=1_000) == 200_000


def test_least_device_ns_limits_events_to_a_thousandth():
    assert least_device_ns(Protocol(), event_cost_ns=100) == 200_000
    assert least_device_ns(Protocol(), event_cost_ns=11_600) == pytest.approx(11_600_000)


def test_event_cost_is_host_time(fakes):
    device = fakes.Device(0, event_cost_ns=11_600)
    assert event_cost_ns(device.timer.record, device.clock) == 11_650
