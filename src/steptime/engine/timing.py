"""The loops that are timed. One stamp per sample, at its end: the next sample starts where this one ended.

Each loop is written out, because a branch or a call inside it would be paid by every step. What a step returns lives
until its sample is stamped (in a group: until the next step of the group is done) and is freed in the next sample."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

from steptime.engine.clock import Clock

Step = Callable[[], Any]
Loop = Callable[[memoryview, range], list[Any]]
"""Stamps the samples `range` of a view; returns the device's events, one more than there are samples, or none."""


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
    """The device has its own queue: an event goes on it behind every sample, and nothing waits."""

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
    """What stamping adds to a step: the loop above against a bare one, around nothing. The least of five."""
    view = memoryview(bytearray(8 * count)).cast("q")
    loop = host_loop(_nothing, clock, 1)
    costs = []
    for _ in range(5):
        start = clock()
        for _ in repeat(None, count):
            _nothing()
        middle = clock()
        loop(view, range(count))
        costs.append((clock() - middle) - (middle - start))
    return max(0.0, min(costs) / count)


def _nothing() -> None:
    pass
