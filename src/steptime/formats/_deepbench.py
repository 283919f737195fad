"""DeepBench's kernels: their sizes under all the names that its files use, and the arithmetic that they do."""

from __future__ import annotations

from math import prod

from steptime.formats._parse import number

OPERATORS = (
    ("sparse", "sparse_gemm"), ("dense matrix", "gemm"), ("matrix", "gemm"), ("convolution", "convolution"),
    ("vanilla", "rnn"), ("lstm", "lstm"), ("gru", "gru"), ("all-reduce", "all_reduce"),
)  # fmt: skip
# Beginnings of the columns that hold a time, and the pass that it is of.
PASSES = {
    "Time (msec)": "forward", "Sparse Time": "forward", "Time Forward": "forward", "Forward (msec)": "forward",
    "Time Backward wrt i": "backward inputs", "Time Backward wrt I": "backward inputs", "Time Backward (": "backward",
    "Time Backward wrt w": "backward weights", "Time Backward wrt W": "backward weights",
    "wrt Inputs": "backward inputs", "wrt Parameters": "backward weights", "Mean All Reduce": "forward",
}  # fmt: skip
# Beginnings of the columns that hold a size. R and S, and the paddings, stand in another order in each vendor's sheets.
SIZES: dict[str, tuple[tuple[str, str], ...]] = {
    "gemm": (("M", "m"), ("N", "n"), ("K", "k")),
    "sparse_gemm": (("M", "m"), ("N", "n"), ("K", "k"), ("Sparsity", "sparsity")),
    "convolution": (
        ("W", "w"), ("H", "h"), ("C", "c"), ("N", "n"), ("K", "k"), ("S", "s"), ("R", "r"), ("pad_w", "pad_w"),
        ("pad_h", "pad_h"), ("Horizontal", "stride_w"), ("Vertical", "stride_h"),
    ),
    "rnn": (("Hidden", "hidden"), ("N", "batch"), ("Timesteps", "steps")),
    "lstm": (("Hidden", "hidden"), ("N", "batch"), ("Timesteps", "steps")),
    "gru": (("Hidden", "hidden"), ("N", "batch"), ("Timesteps", "steps")),
    "all_reduce": (("Size # floats", "floats"), ("# ", "ranks")),
}  # fmt: skip


def operator(title: str) -> str:
    text = title.strip().lower()
    return next((name for word, name in OPERATORS if word in text), "")


def shape(kind: str, values: dict[str, str]) -> dict[str, float] | None:
    """Sizes by our names; None where one is missing. A column is found by its name, or its name and a blank."""
    found: dict[str, float] = {}
    for begin, name in SIZES[kind]:
        columns = [
            c
            for c in values
            if c == begin or c.startswith(f"{begin} ") or (len(begin) > 1 and c.startswith(begin))
        ]
        column = columns[0] if columns else "Input" if begin == "Hidden" else ""
        value = number(values.get(column))
        if value is None:
            return None
        found[name] = value
    return found


def spell(sizes: dict[str, float]) -> str:
    return " ".join(f"{name}{value:.12g}" for name, value in sizes.items())


def output_size(sizes: dict[str, float]) -> list[int] | None:
    """Of a convolution, rounded down as every library does; the sheets of some vendors have halves here."""
    if "stride_w" not in sizes or not sizes["stride_w"] or not sizes["stride_h"]:
        return None
    width = (sizes["w"] - sizes["s"] + 2 * sizes["pad_w"]) // sizes["stride_w"] + 1
    height = (sizes["h"] - sizes["r"] + 2 * sizes["pad_h"]) // sizes["stride_h"] + 1
    return [int(width), int(height)]


def flops(kind: str, sizes: dict[str, float]) -> float | None:
    """DeepBench's own formulas; of a sparse product the work that is left."""
    if kind == "gemm":
        return 2 * sizes["m"] * sizes["n"] * sizes["k"]
    if kind == "sparse_gemm":
        return 2 * sizes["m"] * sizes["n"] * sizes["k"] * (1 - sizes["sparsity"])
    if kind == "convolution":
        output = output_size(sizes)
        return 2 * prod(sizes[name] for name in "nkcrs") * prod(output) if output else None
    if kind == "all_reduce":
        return None
    per_step = {
        "rnn": 2 * sizes["hidden"] + 1,
        "lstm": 8 * sizes["hidden"],
        "gru": 6 * sizes["hidden"],
    }[kind]
    return sizes["batch"] * sizes["hidden"] * sizes["steps"] * per_step
