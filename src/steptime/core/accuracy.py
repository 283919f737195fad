"""The accuracy loss of a low precision: numbers that its result must have to count as a result."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.core.record import Attempt

# All other precisions are compared with fp32.
FULL = ("fp32", "fp64")
# Null if no compared position is finite.
ERRORS = (
    "largest_logit_error",
    "mean_logit_error",
    "largest_relative_error",
    "mean_relative_error",
    "kl_divergence",
)
COUNTS = ("samples", "positions", "broken_positions", "top1_agreement", "reference_rms")
TEXTS = ("reference", "data")
# Findings that are the same in every process of a case.
DETERMINISTIC = ("accuracy", "task")
# In such a finding: the attempt that found it, if another one stores it too.
FOUND_BY = "found_by"


class NoAccuracy(SteptimeError):
    """A low-precision result without its accuracy loss."""


def is_low(precision: str) -> bool:
    return precision not in FULL


def known_findings(attempts: Iterable[Attempt]) -> dict[str, Any]:
    """What the next process of the case may store without finding it out again.

    To predict in two precisions can take longer than to measure."""
    case_findings: dict[str, Any] = {}
    for attempt in attempts:
        if attempt.measurement is None:
            continue
        for name in DETERMINISTIC:
            finding = attempt.findings.get(name)
            if name not in case_findings and isinstance(finding, dict):
                case_findings[name] = {FOUND_BY: attempt.id, **finding}
    return case_findings


def explain_missing_accuracy(precision: str, findings: dict[str, Any]) -> str:
    """Why this cannot be stored as a result of that precision; empty if nothing is missing."""
    if not is_low(precision):
        return ""
    accuracy = findings.get("accuracy")
    if not isinstance(accuracy, dict):
        return f"A result in {precision} needs its accuracy part, and there is none."
    missing = [name for name in TEXTS if not isinstance(accuracy.get(name), str)]
    missing += [name for name in COUNTS if not _is_number(accuracy.get(name))]
    all_broken = accuracy.get("positions") == accuracy.get("broken_positions")
    for name in ERRORS:
        may_be_null = all_broken and name in accuracy
        if not may_be_null and not _is_number(accuracy.get(name)):
            missing.append(name)
    if "task" not in accuracy:
        missing.append("task")
    if not missing:
        return ""
    return f"A result in {precision} needs its accuracy part, which lacks {', '.join(missing)}."


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
