from __future__ import annotations

from typing import Any

from steptime.core.inspection import Operator, self_operators


def span(name: str, ts: float, dur: float, tid: int = 0) -> dict[str, Any]:
    return {"name": name, "ts": ts, "dur": dur, "pid": 0, "tid": tid}


def name(event: dict[str, Any]) -> str:
    return str(event["name"])


def test_self_operators_exclude_inner_spans() -> None:
    events = [
        span("outer", 0, 100),
        span("inner", 10, 30),
        span("core", 15, 5),
        span("inner", 50, 20),
    ]
    found = {
        one.name: (one.calls, round(1e6 * one.seconds)) for one in self_operators(events, name)
    }
    assert found == {"outer": (1, 50), "inner": (2, 45), "core": (1, 5)}


def test_self_operators_separate_threads() -> None:
    events = [span("a", 0, 100, tid=1), span("b", 10, 50, tid=2)]
    assert set(self_operators(events, name)) == {Operator("a", 1, 1e-4), Operator("b", 1, 5e-5)}


def test_self_operators_count_unnamed_spans_for_the_outer() -> None:
    events = [span("a", 0, 100), span("unknown", 10, 50), span("b", 20, 10)]
    found = self_operators(
        events, lambda event: "" if event["name"] == "unknown" else event["name"]
    )
    assert {one.name: round(1e6 * one.seconds) for one in found} == {"a": 90, "b": 10}
