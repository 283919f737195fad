"""A step's time by operator and by class of operators, from what a profiler saw."""

from __future__ import annotations

from typing import Any

from steptime.core.inspection import StepProfile
from steptime.tasks.profile.classes import VERSION, class_of

# Operators that are kept by name; the classes include all of them.
MOST_LISTED = 40


def summarise(profile: StepProfile, steps: int, plain_seconds: float) -> dict[str, Any]:
    timed = [operator for operator in profile.operators if operator.seconds > 0]
    total = sum(operator.seconds for operator in timed) or 1.0
    classes: dict[str, float] = {}
    for operator in timed:
        name = class_of(operator.name)
        classes[name] = classes.get(name, 0.0) + operator.seconds / total
    slowest_first = sorted(timed, key=lambda operator: -operator.seconds)
    listed = []
    for operator in slowest_first[:MOST_LISTED]:
        listed.append(
            {
                "name": operator.name,
                "class": class_of(operator.name),
                "calls": operator.calls / steps,
                "share": operator.seconds / total,
            }
        )
    unlisted_seconds = sum(operator.seconds for operator in slowest_first[MOST_LISTED:])
    watched_seconds = profile.seconds / steps
    return {
        "steps": steps,
        "where": profile.where,
        "table": VERSION,
        "plain_seconds": plain_seconds,
        "watched_seconds": watched_seconds,
        "perturbation": watched_seconds / plain_seconds - 1,
        "classes": dict(sorted(classes.items(), key=lambda pair: -pair[1])),
        "operators": listed,
        "unlisted_share": unlisted_seconds / total,
    }
