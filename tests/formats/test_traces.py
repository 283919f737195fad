"""Timelines."""

from __future__ import annotations

from collections.abc import Callable

from steptime.formats import Reading

Read = Callable[..., Reading]


def test_timeline_has_no_rows(read: Read) -> None:
    for text in ('{"traceEvents": []}', '[{"name": "a", "ph": "X", "ts": 1, "dur": 2}]'):
        found = read("timeline.ctf.json", text)
        assert found.source == "traces" and not found.runs and "kept" in found.skipped[0].reason
