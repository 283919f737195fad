"""Which routines a compiled program runs, read from XLA's own text of it. What a loop repeats is counted once."""

from __future__ import annotations

import re
from collections import Counter

INSTRUCTION = re.compile(
    r"^\s*(?:ROOT )?\S+ = (?:\(.*?\)|(\w+)\[\S*) ([\w-]+)\((.*)$", re.MULTILINE
)
TARGET = re.compile(r'custom_call_target="([^"]+)"')  # a library's routine: cuBLAS, cuDNN, oneDNN
FUSIONS = (
    re.compile(r'"op":"(\w+)"'),
    re.compile(r"op=(\w+)"),
)  # __triton_gemm and its like, or else kLoop …
TELLING = {
    "convolution", "dot", "fft", "gather", "reduce-window", "scatter", "select-and-scatter", "sort", "while",
}  # fmt: skip
"""What takes long and may be one of several routines; the rest is arithmetic between them, mostly fused."""


def executed(text: str) -> dict[str, int]:
    """By '<operation> <type of its result>', '<routine of a library>' or 'fusion <op>'."""
    names = (_name(*found) for found in INSTRUCTION.findall(text))
    return dict(sorted(Counter(name for name in names if name).items()))


def _name(dtype: str, operation: str, rest: str) -> str:
    if operation == "custom-call" and (target := TARGET.search(rest)):
        return target[1]
    if operation == "fusion":
        return "fusion " + next((found[1] for op in FUSIONS if (found := op.search(rest))), "")
    return f"{operation} {dtype}".strip() if operation in TELLING else ""
