"""Timelines of single runs, Chrome's and nvprof's: kept as they are, no rows."""

from __future__ import annotations

from steptime.formats import Found, Original, Skipped

TITLE = "Timelines (Chrome trace, nvprof)"


def recognises(name: str, head: bytes) -> bool:
    if b'"traceEvents"' in head[:4096]:
        return True
    bare = head.lstrip()[:1] == b"[" and b'"ph"' in head[:4096] and b'"ts"' in head[:4096]
    return bare or (b"Start" in head and b"Grid Size" in head and b"Regs*" in head)


def read(file: Original) -> Found:
    yield Skipped("file", "a timeline: kept, and shown with its run; it has no rows")
