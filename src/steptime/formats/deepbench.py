"""What DeepBench's programs print: fixed columns of sizes and times in microseconds."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._deepbench import flops, output_size, spell
from steptime.formats._parse import number, precision, scaled, spelled

TITLE = "DeepBench outputs"
# Names of the columns of each program, in order; times are those with (usec) or fwd/bwd in their heading.
COLUMNS = {
    "gemm": ("m", "n", "k", "a_t", "b_t", "precision", "forward"),
    "convolution": (
        "w", "h", "c", "n", "k", "s", "r", "pad_w", "pad_h", "stride_w", "stride_h", "precision", "forward",
        "backward inputs", "backward weights",
    ),
    "rnn": ("type", "hidden", "batch", "steps", "precision", "forward", "backward inputs", "backward weights"),
    "sparse_gemm": ("m", "n", "k", "a_t", "b_t", "sparsity", "forward", "dense"),
    "all_reduce": ("floats", "bytes", "forward"),
}  # fmt: skip
HEADINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^\s*m\s+n\s+k\s+a_t\s+b_t\s+.*sparsity", re.IGNORECASE), "sparse_gemm"),
    (re.compile(r"^\s*m\s+n\s+k\s+a_t\s+b_t\s+", re.IGNORECASE), "gemm"),
    (re.compile(r"^\s*w\s+h\s+c\s+n\s+k\s+(?:f_w|filter_w|s)\b", re.IGNORECASE), "convolution"),
    (re.compile(r"^\s*type\s+hidden\s+N\s+timesteps\b", re.IGNORECASE), "rnn"),
    (
        re.compile(r"^\s*#?\s*(?:size \(# of )?floats\)?\s+.*(?:bytes|time)", re.IGNORECASE),
        "all_reduce",
    ),
)
TIMES = ("forward", "backward inputs", "backward weights")


def recognises(name: str, head: bytes) -> bool:
    lines = head[:8192].decode(errors="replace").splitlines()
    return any(pattern.match(line) for line in lines if len(line) < 300 for pattern, _ in HEADINGS)


def read(file: Original) -> Found:
    kind = ""
    for i, line in enumerate(file.text.splitlines(), 1):
        found = next((name for pattern, name in HEADINGS if pattern.match(line)), "")
        if found:
            kind = found
        elif kind and re.match(r"\s*(?:\d|lstm\b|gru\b|vanilla\b)", line):
            yield from _line(file, f"line {i}", kind, line)


def _line(file: Original, place: str, kind: str, line: str) -> Found:
    words = line.replace("Not Supported", "Not-Supported").split()
    values = dict(zip(COLUMNS[kind], words, strict=False))
    sizes = {
        name: number(values[name])
        for name in values
        if name not in ("type", "a_t", "b_t", "precision", *TIMES)
    }
    known = {
        name: value
        for name, value in sizes.items()
        if value is not None and name not in ("dense", "bytes")
    }
    times = {name: values[name] for name in TIMES if name in values}
    if not times or len(known) + sum(name in ("dense", "bytes") for name in sizes) < len(sizes):
        yield Skipped(place, "fewer columns than its heading has")
        return
    operator = {"vanilla": "rnn"}.get(
        values.get("type", kind).lower(), values.get("type", kind).lower()
    )
    for word, time in times.items():
        yield _run(
            file, f"{place}, {word}", {"operator": operator, "mode": word}, (values, known, time)
        )


def _run(
    file: Original,
    place: str,
    dimensions: dict[str, Any],
    told: tuple[dict[str, str], dict[str, float], str],
) -> Row:
    values, sizes, time = told
    kind = dimensions["operator"]
    seconds = scaled(time, 1e-3 if kind == "all_reduce" else 1e-6)
    known = kind in ("gemm", "sparse_gemm", "convolution", "rnn", "lstm", "gru")
    work = flops(kind, sizes) if known else None
    return file.run(
        place,
        {
            **dimensions, "shape": spell(sizes), "suite": "DeepBench", "precision": precision(values.get("precision")),
            "phase": "forward" if dimensions["mode"] == "forward" else "training",
        },
        {
            "step_time": seconds,
            "flops": work / seconds if work and seconds else None,
            "bandwidth": 4 * sizes["floats"] / seconds if "floats" in sizes and seconds else None,
        },
        failure="" if seconds is not None else spelled(time).replace("-", " "),
        more={"transposed": f"{values.get('a_t', '')}{values.get('b_t', '')}", "output": output_size(sizes)},
    )  # fmt: skip
