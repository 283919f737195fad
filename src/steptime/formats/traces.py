"""Timelines of single runs, Chrome's and nvprof's: kept as they are, without rows."""

from __future__ import annotations

from steptime.formats import Original, Rows, Skipped

TITLE = "Timelines (Chrome trace, nvprof)"


def recognises(name: str, head: bytes) -> bool:
    start = head[:4096]
    if b'"traceEvents"' in start:
        return True
    if head.lstrip()[:1] == b"[" and b'"ph"' in start and b'"ts"' in start:
        return True
    return b"Start" in head and b"Grid Size" in head and b"Regs*" in head


def read(file: Original) -> Rows:
    yield Skipped("file", "a timeline: kept, and shown with its run; it has no rows")
