from __future__ import annotations

from typing import Any

from steptime.core.inspection import BETWEEN


def test_profile_reports_the_operators_of_every_step(lower: Any) -> None:
    profile = lower("images").profile(3)
    calls = {operator.name: operator.calls for operator in profile.operators}
    assert calls["Convolution"] == 3 and BETWEEN in calls
    assert sum(operator.seconds for operator in profile.operators) >= 0.99 * profile.seconds
