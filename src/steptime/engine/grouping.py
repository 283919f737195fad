"""How many steps make one sample: enough that clock and device events do not blur it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from steptime.core.protocol import Protocol
from steptime.engine.clock import Clock


def least_host_ns(protocol: Protocol, clock_cost_ns: float) -> float:
    return max(1e9 * protocol.group_host_seconds, protocol.group_clock_costs * clock_cost_ns)


def least_device_ns(protocol: Protocol, event_cost_ns: float) -> float:
    """Long enough for the events' resolution, and for the cost of recording one to stay small."""
    return max(1e9 * protocol.group_device_seconds, event_cost_ns / protocol.event_share)


def group_size(step_ns: float, least_ns: float) -> int:
    """The smallest power of two steps that lasts long enough."""
    group = 1
    while group * step_ns < least_ns and group < 1 << 20:
        group *= 2
    return group


def event_cost_ns(record: Callable[[], Any], clock: Clock, count: int = 64) -> float:
    """Host time to record one event. The first few are left out: they fill the event pool."""
    costs = []
    # Kept alive, so that no event is reused.
    events = []
    for _ in range(count):
        start = clock()
        events.append(record())
        costs.append(clock() - start)
    return statistics.median(costs[count // 4 :])
