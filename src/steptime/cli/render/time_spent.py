"""Where the time of a session went, as a sentence and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steptime.core.format import digits

# Shorter stages are summed up.
LEAST_SHARE = 0.02
OTHER = "other"


def to_document(total_seconds: float, stage_seconds: Mapping[str, float]) -> dict[str, Any]:
    """`other`: starting and ending processes, and the command itself."""
    other = max(0.0, total_seconds - sum(stage_seconds.values()))
    return {"total": total_seconds, "stages": {**stage_seconds, OTHER: other}}


def describe(total_seconds: float, stage_seconds: Mapping[str, float]) -> str:
    """Took 18.2 s: warm-up 7.3, import 3.1, … The longest stage comes first."""
    stages: dict[str, float] = to_document(total_seconds, stage_seconds)["stages"]
    other = stages.pop(OTHER)
    shown = []
    for name, seconds in sorted(stages.items(), key=lambda stage: -stage[1]):
        if seconds >= LEAST_SHARE * total_seconds:
            shown.append(f"{name} {digits(round(seconds, 1))}")
        else:
            other += seconds
    shown.append(f"{OTHER} {digits(round(other, 1))}")
    return f"Took {digits(round(total_seconds, 1))} s: {', '.join(shown)}."
