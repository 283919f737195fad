"""Numbers as people read them, in the sentences that results carry and in what commands print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def digits(value: float) -> str:
    """Four significant digits, thousands apart: 12.34, 5,193, 0.01234."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 999.95 else f"{value:.4g}"


def duration(seconds: float) -> str:
    size, unit = next(((size, unit) for size, unit in UNITS if abs(seconds) >= size), UNITS[-1])
    return f"{digits(seconds / size)} {unit}"


def scaled(value: float, unit: str) -> str:
    """794.5 TFLOP/s, 1.87 TB/s."""
    size, prefix = next(
        ((size, prefix) for size, prefix in PREFIXES if abs(value) >= size), (1.0, "")
    )
    return f"{digits(value / size)} {prefix}{unit}"


def between(told: Mapping[str, Any] | None, form: Callable[[float], str]) -> str:
    """A value and its interval, if it has one: 3.5 ms (2.7 ms … ∞)."""
    if told is None:
        return ""
    if told["low"] is None:
        return form(told["value"])
    low, high = ("∞" if told[end] in (None, inf) else form(told[end]) for end in ("low", "high"))
    return f"{form(told['value'])} ({low} … {high})"


def clock(seconds: float) -> str:
    """For waiting: rounded, no false precision."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def percent(share: float) -> str:
    return f"{100 * share:.2g} %" if abs(share) < 0.1 else f"{100 * share:.0f} %"


def byte_count(value: int) -> str:
    """Memory comes in powers of two."""
    size, unit = next(
        ((1 << s, u) for s, u in ((30, "GiB"), (20, "MiB"), (10, "KiB")) if value >= 1 << s),
        (1, "B"),
    )
    return f"{digits(value / size)} {unit}"
