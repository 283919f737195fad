"""Steps of a model that is compiled to count its own time. OpenVINO tells how long operators took, not when they began:
in the trace they are laid one behind the other, which is how one stream runs them."""

from __future__ import annotations

import time
from typing import Any

from steptime.core.inspection import BETWEEN, Operator, StepProfile

WARM_UP_STEPS = 3


def watch(compiled: Any, values: Any, steps: int) -> StepProfile:
    request = compiled.create_infer_request()
    for _ in range(WARM_UP_STEPS):
        request.infer({0: values})
    calls, times, events, seconds = (
        dict[str, int](),
        dict[str, float](),
        list[dict[str, Any]](),
        0.0,
    )
    for _ in range(steps):
        begin = time.perf_counter()
        request.infer({0: values})
        end, place = time.perf_counter() - begin, seconds
        events.append(_span("step", "step", seconds, end))
        for one in request.profiling_info:
            if taken := one.real_time.total_seconds():
                name = one.node_type
                calls[name], times[name] = calls.get(name, 0) + 1, times.get(name, 0.0) + taken
                events.append(_span(name, one.exec_type, place, taken))
                place += taken
        seconds += end
    rest = Operator(BETWEEN, 0, max(0.0, seconds - sum(times.values())))
    return StepProfile(
        (*(Operator(name, calls[name], times[name]) for name in times), rest), events, seconds
    )


def _span(name: str, category: str, begin: float, seconds: float) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "ts": begin * 1e6,
        "dur": seconds * 1e6,
        "pid": 0,
        "tid": 0,
    }
