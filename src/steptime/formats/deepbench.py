"""What DeepBench's programs print: fixed columns of sizes, and of times in microseconds."""

from __future__ import annotations

import re
from typing import NamedTuple

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._deepbench import flops, format_sizes, output_size
from steptime.formats._parse import clean_text, number, precision, ratio, scale

TITLE = "DeepBench outputs"
TIMES = ("forward", "backward inputs", "backward weights")
# The columns of each program, in order.
COLUMNS = {
    "gemm": ("m", "n", "k", "a_t", "b_t", "precision", "forward"),
    "convolution": (
        *("w", "h", "c", "n", "k", "s", "r", "pad_w", "pad_h", "stride_w", "stride_h"),
        *("precision", *TIMES),
    ),
    "rnn": ("type", "hidden", "batch", "steps", "precision", *TIMES),
    "sparse_gemm": ("m", "n", "k", "a_t", "b_t", "sparsity", "forward", "dense"),
    "all_reduce": ("floats", "bytes", "forward"),
}
HEADINGS = {
    "sparse_gemm": re.compile(r"^\s*m\s+n\s+k\s+a_t\s+b_t\s+.*sparsity", re.IGNORECASE),
    "gemm": re.compile(r"^\s*m\s+n\s+k\s+a_t\s+b_t\s+", re.IGNORECASE),
    "convolution": re.compile(r"^\s*w\s+h\s+c\s+n\s+k\s+(?:f_w|filter_w|s)\b", re.IGNORECASE),
    "rnn": re.compile(r"^\s*type\s+hidden\s+N\s+timesteps\b", re.IGNORECASE),
    "all_reduce": re.compile(
        r"^\s*#?\s*(?:size \(# of )?floats\)?\s+.*(?:bytes|time)", re.IGNORECASE
    ),
}
# Columns that hold no number, or a time.
TEXTS = ("type", "a_t", "b_t", "precision", *TIMES)
# Numbers that are no sizes of the kernel.
NO_SIZES = ("dense", "bytes")
# Operators whose arithmetic is known.
COUNTED = ("gemm", "sparse_gemm", "convolution", "rnn", "lstm", "gru")
# A heading is short; longer lines are not worth a search.
LONGEST_HEADING = 300


class Kernel(NamedTuple):
    operator: str
    values: dict[str, str]
    sizes: dict[str, float]


def recognises(name: str, head: bytes) -> bool:
    lines = head[:8192].decode(errors="replace").splitlines()
    return any(_program(line) for line in lines if len(line) < LONGEST_HEADING)


def read(file: Original) -> Rows:
    program = ""
    for number_of_line, line in enumerate(file.text.splitlines(), 1):
        heading = _program(line)
        if heading:
            program = heading
        elif program and re.match(r"\s*(?:\d|lstm\b|gru\b|vanilla\b)", line):
            yield from _read_line(file, f"line {number_of_line}", program, line)


def _program(line: str) -> str:
    """The program whose heading this line is; empty if it is none."""
    for name, pattern in HEADINGS.items():
        if pattern.match(line):
            return name
    return ""


def _read_line(file: Original, location: str, program: str, line: str) -> Rows:
    cells = line.replace("Not Supported", "Not-Supported").split()
    values = dict(zip(COLUMNS[program], cells, strict=False))
    numbers = {name: number(value) for name, value in values.items() if name not in TEXTS}
    sizes = {}
    missing = 0
    for name, value in numbers.items():
        if name in NO_SIZES:
            continue
        if value is None:
            missing += 1
        else:
            sizes[name] = value
    passes = [name for name in TIMES if name in values]
    if not passes or missing:
        yield Skipped(location, "fewer columns than its heading has")
        return
    operator = values.get("type", program).lower()
    kernel = Kernel("rnn" if operator == "vanilla" else operator, values, sizes)
    for name in passes:
        yield _read_pass(file, f"{location}, {name}", kernel, name)


def _read_pass(file: Original, location: str, kernel: Kernel, name: str) -> Row:
    operator, values, sizes = kernel
    time = values[name]
    seconds = scale(time, 1e-3 if operator == "all_reduce" else 1e-6)
    work = flops(operator, sizes) if operator in COUNTED else None
    moved_bytes = 4 * sizes["floats"] if "floats" in sizes else None
    return file.run(
        location,
        {
            "operator": operator,
            "mode": name,
            "shape": format_sizes(sizes),
            "suite": "DeepBench",
            "precision": precision(values.get("precision")),
            "phase": "forward" if name == "forward" else "training",
        },
        {
            "step_time": seconds,
            "flops": ratio(work, seconds),
            "bandwidth": moved_bytes / seconds if moved_bytes is not None and seconds else None,
        },
        failure="" if seconds is not None else clean_text(time).replace("-", " "),
        more={
            "transposed": f"{values.get('a_t', '')}{values.get('b_t', '')}",
            "output": output_size(sizes),
        },
    )
