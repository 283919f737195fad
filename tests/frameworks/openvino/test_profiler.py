from __future__ import annotations

from typing import Any

from steptime.core.inspection import BETWEEN


def test_a_model_that_counts_its_time_tells_its_operators(lower: Any) -> None:
    found = lower("images").profile(3)
    calls = {one.name: one.calls for one in found.operators}
    assert calls["Convolution"] == 3 and BETWEEN in calls
    assert sum(one.seconds for one in found.operators) >= 0.99 * found.seconds
