"""Which kernels a step runs, and in which provider.

They come from a separate session: the profiler would slow down the one that is timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from steptime.core.case import Case
from steptime.frameworks.onnxruntime.profiler import KERNEL, record_trace


def kernels_of(model: bytes, case: Case, feed: dict[str, Any]) -> dict[str, int]:
    """Calls of each kernel in one step, by '<operator> <provider>'."""
    counts = Counter[str]()
    for event in record_trace(model, case, feed, steps=1):
        if event["name"].endswith(KERNEL):
            details = event["args"]
            counts[f"{details['op_name']} {details['provider']}"] += 1
    return dict(sorted(counts.items()))
