"""What a low precision owes for its speed: the numbers that its result must carry, or it is no result."""

from __future__ import annotations

import math
from typing import Any

from steptime.core.errors import SteptimeError

FULL = ("fp32", "fp64")
"""Precisions that owe nothing: the others are compared to fp32."""

ERRORS = (
    "largest_logit_error",
    "mean_logit_error",
    "largest_relative_error",
    "mean_relative_error",
    "kl_divergence",
)
"""Null where not one compared position came out finite."""
COUNTS = ("samples", "positions", "broken_positions", "top1_agreement", "reference_rms")
WORDS = ("reference", "data")


class NoAccuracy(SteptimeError):
    """A low-precision result without what its precision cost."""


def is_low(precision: str) -> bool:
    return precision not in FULL


def lacking(precision: str, findings: dict[str, Any]) -> str:
    """Why this cannot be kept as a result of that precision; empty: nothing is missing."""
    if not is_low(precision):
        return ""
    found = findings.get("accuracy")
    if not isinstance(found, dict):
        return f"A result in {precision} needs its accuracy part, and there is none."
    broken = found.get("positions") == found.get("broken_positions")
    wrong = [name for name in WORDS if not isinstance(found.get(name), str)]
    wrong += [name for name in COUNTS if not _is_number(found.get(name))]
    wrong += [
        name
        for name in ERRORS
        if not _is_number(found.get(name, "")) and not (broken and name in found)
    ]
    wrong += [] if "task" in found else ["task"]
    return (
        f"A result in {precision} needs its accuracy part, which lacks {', '.join(wrong)}."
        if wrong
        else ""
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
