from __future__ import annotations

from typing import Any

import pytest

from steptime.core.inspection import BETWEEN
from steptime.frameworks.onnxruntime.profiler import summarize


def test_summarize_counts_the_last_steps_and_the_time_between_kernels() -> None:
    events = []
    for start in (0, 1000, 2000):
        events.append({"ph": "X", "name": "model_run", "ts": start, "dur": 100})
        kernel = {
            "ph": "X",
            "name": "c_kernel_time",
            "ts": start + 10,
            "dur": 60,
            "args": {"op_name": "Conv"},
        }
        events.append(kernel)
    profile = summarize(events, 2)
    assert profile.seconds == pytest.approx(200e-6) and len(profile.events) == 4
    microseconds = {}
    for operator in profile.operators:
        microseconds[operator.name] = (operator.calls, round(1e6 * operator.seconds))
    assert microseconds == {"Conv": (2, 120), BETWEEN: (0, 80)}


def test_profile_reports_kernels_of_every_step(lower: Any) -> None:
    profile = lower("images").profile(3)
    calls = {operator.name: operator.calls for operator in profile.operators}
    assert calls["Conv"] == 3 and calls["MaxPool"] == 3
