"""Numbers for people, in the sentences of results and in the output of commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
HUGE = 1e15
# Numbers with their points and commas count as words.
WORD_END = re.compile(r"[\w.,]+$")
BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def _pick_unit(value: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest unit that the value reaches, else the smallest one."""
    for size, unit in units:
        if abs(value) >= size:
            return size, unit
    return units[-1]


def digits(value: float) -> str:
    """Four significant digits, thousands separated: 12.34, 5,193, 0.01234."""
    if value == 0:
        return "0"
    # More digits than a number can be known to.
    if abs(value) >= HUGE:
        return f"{value:.3g}"
    # 999.95 is the smallest value that four digits would round to 1000.
    return f"{value:,.0f}" if abs(value) >= 999.95 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """12.34 ms."""
    size, unit = _pick_unit(seconds, TIME_UNITS)
    return f"{digits(seconds / size)} {unit}"


def with_prefix(value: float, unit: str) -> str:
    """794.5 TFLOP/s, 1.87 TB/s."""
    size, prefix = _pick_unit(value, PREFIXES)
    return f"{digits(value / size)} {prefix}{unit}"


def with_interval(estimate: Mapping[str, Any] | None, form: Callable[[float], str]) -> str:
    """A value, with its interval if it has one: 3.5 ms (2.7 ms … ∞). Empty for None."""
    if estimate is None:
        return ""
    value = form(estimate["value"])
    if estimate["low"] is None:
        return value
    low = _end(estimate["low"], form)
    high = _end(estimate["high"], form)
    return f"{value} ({low} … {high})"


def _end(value: float | None, form: Callable[[float], str]) -> str:
    if value in (None, inf):
        return "∞"
    return "-∞" if value == -inf else form(value)


def rough_duration(seconds: float) -> str:
    """For estimates: rounded, without false precision."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def percent(share: float) -> str:
    """Two significant digits below 10 %: 4.2 %, 42 %."""
    if abs(share) < 0.1 or abs(share) >= HUGE:
        return f"{100 * share:.2g} %"
    return f"{100 * share:.0f} %"


def shorten(text: str, longest: int) -> str:
    """Whole words with … after them. Only a word that is too long by itself is cut."""
    if len(text) <= longest:
        return text
    start = text[: longest - 1]
    # The next character belongs to the last word.
    if WORD_END.match(text[longest - 1]):
        start = WORD_END.sub("", start) or start
    return f"{start.rstrip()}…"


def byte_count(value: int) -> str:
    """12.5 GiB: memory comes in powers of two."""
    size, unit = _pick_unit(value, BYTE_UNITS)
    return f"{digits(value / size)} {unit}"
