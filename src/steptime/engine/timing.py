"""The timed loops. One stamp at the end of each sample: the next sample starts there.

Each loop is written out, because every step would pay for a branch or a call inside it. What a
step returns lives until its sample is stamped, or in a group until the next step is done. It is
freed in the next sample."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

from steptime.engine.clock import Clock

Step = Callable[[], Any]
# Stamps the samples `range` of a view. Returns device events, one more than samples, or none.
Loop = Callable[[memoryview, range], list[Any]]


def host_loop(step: Step, clock: Clock, group: int) -> Loop:
    def singles(view: memoryview, span: range) -> list[Any]:
        for index in span:
            outputs = step()
            view[index] = clock()
            del outputs
        return []

    def groups(view: memoryview, span: range) -> list[Any]:
        for index in span:
            for _ in repeat(None, group):
                outputs = step()
            view[index] = clock()
            del outputs
        return []

    return singles if group == 1 else groups


def stream_loop(step: Step, clock: Clock, group: int, record: Step) -> Loop:
    """The device has its own queue: an event is recorded after every sample, and nothing waits."""

    def samples(view: memoryview, span: range) -> list[Any]:
        events = [record()]
        add = events.append
        for index in span:
            for _ in repeat(None, group):
                outputs = step()
            add(record())
            view[index] = clock()
            del outputs
        return events

    return samples


def latency_loop(step: Step, clock: Clock, group: int, wait: Callable[[], None]) -> Loop:
    """The host sees every step's end."""

    def samples(view: memoryview, span: range) -> list[Any]:
        for index in span:
            for _ in repeat(None, group):
                outputs = step()
                wait()
            view[index] = clock()
            del outputs
        return []

    return samples


def stamp_cost_ns(clock: Clock, count: int = 1000) -> float:
    """What stamping adds to a step: a stamped loop of empty steps minus a bare one; least of 5."""
    view = memoryview(bytearray(8 * count)).cast("q")
    loop = host_loop(_noop, clock, 1)
    costs = []
    for _ in range(5):
        start = clock()
        for _ in repeat(None, count):
            _noop()
        middle = clock()
        loop(view, range(count))
        costs.append((clock() - middle) - (middle - start))
    return max(0.0, min(costs) / count)


def _noop() -> None:
    pass
