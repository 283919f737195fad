"""Numbers as people read them, for the sentences that results carry."""

from __future__ import annotations


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def duration(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
