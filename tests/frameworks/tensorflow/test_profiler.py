from __future__ import annotations

from typing import Any


def test_a_step_tells_its_operations_by_their_own_time(lower: Any) -> None:
    program = lower("images")
    program.step()
    found = program.watch(2)
    assert any("Conv2D" in one.name for one in found.operators)
    assert all(one.seconds >= 0 for one in found.operators)
    assert {"X", "M"} == {event["ph"] for event in found.events}
