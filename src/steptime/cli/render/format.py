"""Numbers, cases and settings as people read and write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from steptime.core.case import SETTINGS, Case
from steptime.core.errors import SteptimeError
from steptime.core.format import clock, scaled

__all__ = ["clock", "described", "differing", "processes", "scaled", "settings"]


def processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def differing(cases: Sequence[Case], always: Iterable[str] = ("workload",)) -> list[str]:
    """The settings that tell these cases apart."""
    return [
        name
        for name in SETTINGS
        if name in always or len({getattr(case, name) for case in cases}) > 1
    ]


def described(case: Case, names: Iterable[str]) -> str:
    """Words speak for themselves, numbers say whose they are: `lenet5 inference batch size 8`."""
    values = ((name, getattr(case, name)) for name in names if getattr(case, name) != "")
    return " ".join(
        v if isinstance(v, str) else f"{name.replace('_', ' ')} {v}" for name, v in values
    )


def settings(texts: Iterable[str]) -> dict[str, Any]:
    """`key=value` words; a comma in a value makes it a list."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise SteptimeError(
                f"Settings are written key=value, for example batch_size=64; found {text!r}."
            )
        from steptime.plan.references import typed  # slow to import, and help does not need it

        words = [typed(word) for word in value.split(",")]
        found[name.strip()] = words[0] if len(words) == 1 else words
    return found
