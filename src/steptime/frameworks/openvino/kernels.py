"""Which kernels a step runs, read from the model that is timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

# An operator with such a kernel does nothing.
NO_KERNEL = ("unknown", "undef")


def kernels_of(compiled: Any) -> dict[str, int]:
    """Counts by '<operator> <kernel>'. The name of a kernel ends with the type in which it
    computes, so it shows a silent bf16."""
    counts = Counter[str]()
    for node in compiled.get_runtime_model().get_ops():
        info = node.get_rt_info()
        operator = info["layerType"].value
        kernel = info["primitiveType"].value
        if not kernel.startswith(NO_KERNEL):
            counts[f"{operator} {kernel}"] += 1
    return dict(sorted(counts.items()))
