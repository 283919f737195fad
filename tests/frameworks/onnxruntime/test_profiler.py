from __future__ import annotations

from typing import Any

import pytest

from steptime.core.inspection import BETWEEN
from steptime.frameworks.onnxruntime.profiler import seen


def test_kernels_of_the_last_steps_count_and_the_rest_is_between_them() -> None:
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
    found = seen(events, 2)
    assert found.seconds == pytest.approx(200e-6) and len(found.events) == 4
    assert {one.name: (one.calls, round(1e6 * one.seconds)) for one in found.operators} == {
        "Conv": (2, 120), BETWEEN: (0, 80),
    }  # fmt: skip


def test_a_session_of_its_own_tells_its_kernels(lower: Any) -> None:
    found = lower("images").profile(3)
    calls = {one.name: one.calls for one in found.operators}
    assert calls["Conv"] == 3 and calls["MaxPool"] == 3
