"""Percentiles of an inference step: those that are known, and what the others need.

The loop is closed: a step begins when the one before it has ended. So these are service times.
Requests that come in on their own also wait for each other, which is not measured here."""

from __future__ import annotations

import math
from collections.abc import Sequence

from steptime.analysis.result import Result
from steptime.analysis.statistics import Percentile
from steptime.cli.render.format import plural
from steptime.core.case import Case
from steptime.core.format import duration

# The usual ones of a service; --json has more.
SHOWN = (50.0, 90.0, 99.0)
NAMES = tuple(f"p{percent:g}" for percent in SHOWN)
CLOSED_LOOP = "service time of a closed loop, not latency under load"
# Steps of a GPU wait in its queue: one ends a step's time after the one before it.
STREAM = "time between the ends of two queued steps; timing=latency waits for each step"
# Below it a process groups steps, also if it waits for each (`group_host_seconds`).
LEAST_STEP_SECONDS = 20e-6


def cells(case: Case, outcome: Result) -> dict[str, str]:
    """For a table; empty if unknown."""
    texts = dict.fromkeys(NAMES, "")
    for percentile in _shown(case, outcome):
        if percentile.seconds is not None:
            texts[f"p{percentile.percent:g}"] = duration(percentile.seconds)
    return texts


def lines(case: Case, outcome: Result) -> dict[str, str]:
    """For a single result; empty for other phases."""
    values = [f"{name} {text}" for name, text in cells(case, outcome).items() if text]
    sentences = [f"{', '.join(values)} ({meaning(case)})"] if values else []
    missing = explain_missing(case, outcome)
    if missing:
        sentences.append(missing)
    return {"percentiles": "; ".join(sentences)}


def meaning(case: Case) -> str:
    return CLOSED_LOOP if case.device == "cpu" or case.timing == "latency" else STREAM


def explain_missing(case: Case, outcome: Result) -> str:
    """Why percentiles are missing, how many steps they lack, and what to set; else empty."""
    if case.phase != "inference":
        return ""
    if outcome.spread.steps_per_sample > 1:
        return _explain_groups(case, outcome)
    steps = outcome.spread.steps
    missing = [p for p in _shown(case, outcome) if p.seconds is None]
    if not missing:
        return ""
    needs = []
    for percentile in missing:
        more = plural(percentile.steps_needed - steps, "more step")
        needs.append(f"p{percentile.percent:g} needs {percentile.steps_needed:,} steps, {more}")
    # The steps of all processes count together.
    each = math.ceil(missing[-1].steps_needed / outcome.spread.processes)
    return f"{'; '.join(needs)}: --set protocol.least_steps={each}"


def _explain_groups(case: Case, outcome: Result) -> str:
    group = outcome.spread.steps_per_sample
    reason = f"unknown of single steps: too short to be timed alone, a sample is {group:,} of them"
    seconds = outcome.times.typical_time_seconds.value
    if case.device != "cpu" and case.timing == "stream" and seconds >= LEAST_STEP_SECONDS:
        return f"{reason}; --set timing=latency times each"
    return f"{reason}; a larger batch makes them longer"


def _shown(case: Case, outcome: Result) -> Sequence[Percentile]:
    if case.phase != "inference":
        return ()
    return [p for p in outcome.times.percentiles_seconds if p.percent in SHOWN]
