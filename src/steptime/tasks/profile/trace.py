"""A trace as it is kept: Chrome's format, without what nobody looks at, packed, under its content's name."""

from __future__ import annotations

import gzip
import json
from typing import Any

from steptime.store.blobs import Blobs

KINDS = ("X", "M", "s", "f")  # spans, names of threads, arrows from a launch to its kernel
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


def keep(events: list[dict[str, Any]], blobs: Blobs) -> dict[str, Any]:
    """Times begin at 0: a trace tells how long things take, not since when the machine is up."""
    kept = [event for event in events if event.get("ph") in KINDS]
    spans = [event for event in kept if event["ph"] == "X"]
    start = min((event["ts"] for event in spans), default=0.0)
    document = {"traceEvents": [_slim(event, start) for event in kept], "displayTimeUnit": "ms"}
    packed = gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)
    return {
        "sha256": blobs.put(packed), "bytes": len(packed), "encoding": "gzip", "media": MEDIA, "events": len(spans),
    }  # fmt: skip


def _slim(event: dict[str, Any], start: float) -> dict[str, Any]:
    found = {name: event[name] for name in FIELDS if name in event}
    if "ts" in found:
        found["ts"] = round(max(0.0, found["ts"] - start), 3)
    arguments = {
        name: value for name, value in (event.get("args") or {}).items() if name in ARGUMENTS
    }
    return {**found, "args": arguments} if arguments else found
