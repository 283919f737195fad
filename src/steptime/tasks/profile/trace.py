"""Store a trace in Chrome's format, reduced to what viewers show, under its content's name."""

from __future__ import annotations

import gzip
import json
from typing import Any

from steptime.store.blobs import Blobs

# Spans, names of threads, arrows from a launch to its kernel.
PHASES = ("X", "M", "s", "f")
FIELDS = ("name", "cat", "ph", "ts", "dur", "pid", "tid", "id", "bp")
ARGUMENTS = (
    "name",
    "sort_index",
    "labels",
    "stream",
    "grid",
    "block",
    "bytes",
    "hlo_op",
    "op_name",
    "provider",
)
MEDIA = "application/json"


def store_trace(events: list[dict[str, Any]], blobs: Blobs) -> dict[str, Any]:
    """Times begin at 0: how long the machine has been up does not matter."""
    shown = [event for event in events if event.get("ph") in PHASES]
    spans = [event for event in shown if event["ph"] == "X"]
    start = min((event["ts"] for event in spans), default=0.0)
    reduced = [_reduce_event(event, start) for event in shown]
    document = {"traceEvents": reduced, "displayTimeUnit": "ms"}
    text = json.dumps(document, separators=(",", ":"))
    # Without a time of writing, so that equal traces have equal names.
    packed = gzip.compress(text.encode(), mtime=0)
    return {
        "sha256": blobs.put(packed),
        "bytes": len(packed),
        "encoding": "gzip",
        "media": MEDIA,
        "events": len(spans),
    }


def _reduce_event(event: dict[str, Any], start: float) -> dict[str, Any]:
    reduced = {name: event[name] for name in FIELDS if name in event}
    if "ts" in reduced:
        reduced["ts"] = round(max(0.0, reduced["ts"] - start), 3)
    arguments = event.get("args") or {}
    shown = {name: value for name, value in arguments.items() if name in ARGUMENTS}
    if shown:
        reduced["args"] = shown
    return reduced
