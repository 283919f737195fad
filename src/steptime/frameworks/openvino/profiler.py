"""Steps of a model that counts its own time.

OpenVINO reports how long operators took but not when they began. In the trace they lie one after
the other, which is how a single stream runs them."""

from __future__ import annotations

import time
from typing import Any

from steptime.core.inspection import BETWEEN, Operator, StepProfile

WARM_UP_STEPS = 3
Event = dict[str, Any]  # of Chrome's trace format


def profile_steps(compiled: Any, values: Any, steps: int) -> StepProfile:
    request = compiled.create_infer_request()
    for _ in range(WARM_UP_STEPS):
        request.infer({0: values})
    calls: dict[str, int] = {}
    times: dict[str, float] = {}
    events: list[Event] = []
    total_seconds = 0.0
    for _ in range(steps):
        begin = time.perf_counter()
        request.infer({0: values})
        step_seconds = time.perf_counter() - begin
        events.append(_span("step", "step", total_seconds, step_seconds))
        position = total_seconds
        for info in request.profiling_info:
            seconds = info.real_time.total_seconds()
            if not seconds:
                continue
            name = info.node_type
            calls[name] = calls.get(name, 0) + 1
            times[name] = times.get(name, 0.0) + seconds
            events.append(_span(name, info.exec_type, position, seconds))
            position += seconds
        total_seconds += step_seconds
    operators = [Operator(name, calls[name], times[name]) for name in times]
    operators.append(Operator(BETWEEN, 0, max(0.0, total_seconds - sum(times.values()))))
    return StepProfile(tuple(operators), events, total_seconds)


def _span(name: str, category: str, begin: float, seconds: float) -> Event:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "ts": begin * 1e6,
        "dur": seconds * 1e6,
        "pid": 0,
        "tid": 0,
    }
