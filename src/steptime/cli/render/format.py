"""Counts and cases as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steptime.core.case import SETTINGS, Case


def plural(count: int, noun: str, nouns: str = "") -> str:
    """`1 journal`, `3,000 journals`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def processes(count: int) -> str:
    return plural(count, "process", "processes")


def differing_settings(cases: Sequence[Case], always: Iterable[str] = ("workload",)) -> list[str]:
    """The settings that distinguish these cases."""
    names = []
    for name in SETTINGS:
        values = {getattr(case, name) for case in cases}
        if name in always or len(values) > 1:
            names.append(name)
    return names


def describe_case(case: Case, names: Iterable[str]) -> str:
    """Numbers carry the name of their setting: `lenet5 inference batch size 8`."""
    texts = []
    for name in names:
        value = getattr(case, name)
        if isinstance(value, str):
            texts.append(value)
        else:
            texts.append(f"{name.replace('_', ' ')} {value}")
    return " ".join(filter(None, texts))
