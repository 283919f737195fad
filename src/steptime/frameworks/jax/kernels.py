"""Which routines a compiled program runs, read from XLA's text of it.

What a loop repeats is counted once."""

from __future__ import annotations

import re
from collections import Counter

INSTRUCTION = re.compile(
    r"^\s*(?:ROOT )?\S+ = (?:\(.*?\)|(\w+)\[\S*) ([\w-]+)\((.*)$", re.MULTILINE
)
# A routine of a library: cuBLAS, cuDNN, oneDNN.
TARGET = re.compile(r'custom_call_target="([^"]+)"')
# The name of a generated kernel such as __triton_gemm, or else the type of fusion such as kLoop.
FUSIONS = (re.compile(r'"op":"(\w+)"'), re.compile(r"op=(\w+)"))
# These take long and may be one of several routines. The rest is arithmetic, mostly fused.
COUNTED = {
    "convolution",
    "dot",
    "fft",
    "gather",
    "reduce-window",
    "scatter",
    "select-and-scatter",
    "sort",
    "while",
}


def kernels_of(text: str) -> dict[str, int]:
    """Counts by '<operation> <type of its result>', '<routine of a library>' or 'fusion <op>'."""
    counts = Counter[str]()
    for dtype, operation, rest in INSTRUCTION.findall(text):
        name = _name(dtype, operation, rest)
        if name:
            counts[name] += 1
    return dict(sorted(counts.items()))


def _name(dtype: str, operation: str, rest: str) -> str:
    target = TARGET.search(rest)
    if operation == "custom-call" and target:
        return target[1]
    if operation == "fusion":
        return f"fusion {_fusion_op(rest)}"
    return f"{operation} {dtype}".strip() if operation in COUNTED else ""


def _fusion_op(rest: str) -> str:
    for pattern in FUSIONS:
        match = pattern.search(rest)
        if match:
            return match[1]
    return ""
