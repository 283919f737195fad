from __future__ import annotations

from typing import Any


def test_profile_reports_operations_by_self_time(lower: Any) -> None:
    program = lower("images")
    program.step()
    profile = program.profile(2)
    assert any("Conv2D" in operator.name for operator in profile.operators)
    assert all(operator.seconds >= 0 for operator in profile.operators)
    assert {"X", "M"} == {event["ph"] for event in profile.events}
