"""DeepBench's kernels: the names of their sizes in its files, and the arithmetic they do."""

from __future__ import annotations

from math import prod

from steptime.formats._parse import number

OPERATORS = {
    "sparse": "sparse_gemm",
    "dense matrix": "gemm",
    "matrix": "gemm",
    "convolution": "convolution",
    "vanilla": "rnn",
    "lstm": "lstm",
    "gru": "gru",
    "all-reduce": "all_reduce",
}
# The beginning of each column that holds a time, and the pass that it times.
PASSES = {
    "Time (msec)": "forward",
    "Sparse Time": "forward",
    "Time Forward": "forward",
    "Forward (msec)": "forward",
    "Time Backward wrt i": "backward inputs",
    "Time Backward wrt I": "backward inputs",
    "Time Backward (": "backward",
    "Time Backward wrt w": "backward weights",
    "Time Backward wrt W": "backward weights",
    "wrt Inputs": "backward inputs",
    "wrt Parameters": "backward weights",
    "Mean All Reduce": "forward",
}
RECURRENT = {"Hidden": "hidden", "N": "batch", "Timesteps": "steps"}
# The beginning of each column that holds a size. The order of R and S, and of the paddings,
# differs between the sheets of the vendors.
SIZES: dict[str, dict[str, str]] = {
    "gemm": {"M": "m", "N": "n", "K": "k"},
    "sparse_gemm": {"M": "m", "N": "n", "K": "k", "Sparsity": "sparsity"},
    "convolution": {
        "W": "w",
        "H": "h",
        "C": "c",
        "N": "n",
        "K": "k",
        "S": "s",
        "R": "r",
        "pad_w": "pad_w",
        "pad_h": "pad_h",
        "Horizontal": "stride_w",
        "Vertical": "stride_h",
    },
    "rnn": RECURRENT,
    "lstm": RECURRENT,
    "gru": RECURRENT,
    "all_reduce": {"Size # floats": "floats", "# ": "ranks"},
}


def operator(title: str) -> str:
    text = title.strip().lower()
    for name, op in OPERATORS.items():
        if name in text:
            return op
    return ""


def shape(op: str, values: dict[str, str]) -> dict[str, float] | None:
    """Sizes by our names; None if one is missing."""
    sizes: dict[str, float] = {}
    for start, name in SIZES[op].items():
        value = number(values.get(_find_column(start, values)))
        if value is None:
            return None
        sizes[name] = value
    return sizes


def _find_column(start: str, values: dict[str, str]) -> str:
    """One letter must be the complete name, or be followed by a blank."""
    for column in values:
        if column == start or column.startswith(f"{start} "):
            return column
        if len(start) > 1 and column.startswith(start):
            return column
    # Recurrent networks have as many inputs as hidden units, and some sheets name the inputs.
    return "Input" if start == "Hidden" else ""


def format_sizes(sizes: dict[str, float]) -> str:
    return " ".join(f"{name}{value:.12g}" for name, value in sizes.items())


def output_size(sizes: dict[str, float]) -> list[int] | None:
    """Of a convolution, rounded down as every library does; some sheets have halves here."""
    if "stride_w" not in sizes or not sizes["stride_w"] or not sizes["stride_h"]:
        return None
    padded_width = sizes["w"] + 2 * sizes["pad_w"]
    padded_height = sizes["h"] + 2 * sizes["pad_h"]
    width = (padded_width - sizes["s"]) // sizes["stride_w"] + 1
    height = (padded_height - sizes["r"]) // sizes["stride_h"] + 1
    return [int(width), int(height)]


def flops(op: str, sizes: dict[str, float]) -> float | None:
    """DeepBench's own formulas; for a sparse product the work that is left."""
    if op == "all_reduce":
        return None
    if op in ("gemm", "sparse_gemm"):
        dense = 2 * sizes["m"] * sizes["n"] * sizes["k"]
        return dense * (1 - sizes["sparsity"]) if op == "sparse_gemm" else dense
    if op == "convolution":
        output = output_size(sizes)
        return 2 * prod(sizes[name] for name in "nkcrs") * prod(output) if output else None
    hidden = sizes["hidden"]
    per_unit = {"rnn": 2 * hidden + 1, "lstm": 8 * hidden, "gru": 6 * hidden}[op]
    return sizes["batch"] * hidden * sizes["steps"] * per_unit
