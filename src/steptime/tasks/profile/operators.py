"""A step's time by operator and by class of operators, out of what a profiler saw."""

from __future__ import annotations

from typing import Any

from steptime.core.inspection import StepProfile
from steptime.tasks.profile.classes import VERSION, class_of

MOST = 40  # operators that are kept by name; classes know them all


def digest(seen: StepProfile, steps: int, plain_seconds: float) -> dict[str, Any]:
    own = [one for one in seen.operators if one.seconds > 0]
    total = sum(one.seconds for one in own) or 1.0
    classes: dict[str, float] = {}
    for one in own:
        classes[class_of(one.name)] = classes.get(class_of(one.name), 0.0) + one.seconds / total
    top = sorted(own, key=lambda one: -one.seconds)
    return {
        "steps": steps,
        "where": seen.where,
        "table": VERSION,
        "plain_seconds": plain_seconds,
        "watched_seconds": seen.seconds / steps,
        "perturbation": seen.seconds / steps / plain_seconds - 1,
        "classes": dict(sorted(classes.items(), key=lambda pair: -pair[1])),
        "operators": [
            {
                "name": one.name,
                "class": class_of(one.name),
                "calls": one.calls / steps,
                "share": one.seconds / total,
            }
            for one in top[:MOST]
        ],
        "unlisted_share": sum(one.seconds for one in top[MOST:]) / total,
    }
