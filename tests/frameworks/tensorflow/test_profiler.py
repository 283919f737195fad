from __future__ import annotations

from typing import Any


def test_watch_reports_operations_by_self_time(lower: Any) -> None:
    program = lower("images")
    program.step()
    watched = program.profile(2)
    assert any("Conv2D" in operator.name for operator in watched.operators)
    assert all(operator.seconds >= 0 for operator in watched.operators)
    assert {"X", "M"} == {event["ph"] for event in watched.events}
