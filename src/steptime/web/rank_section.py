"""What a run's page says of several ranks: whose step it is, how fast one and all are, what their exchange takes."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

from steptime.analysis.result import Result
from steptime.core.case import Case
from steptime.core.format import between, digits, duration, scaled

Told = dict[str, Any]
RATE = partial(scaled, unit="B/s")


def headline(case: Case, numbers: Result) -> str:
    """A rate says whether it is one rank's or that of all together."""
    if case.ranks == 1:
        return numbers.headline
    speed = numbers.times.throughput
    unit = f"{speed.unit.replace('_', ' ')}/s"
    each, together = (
        digits(rates[speed.unit].value) for rates in (speed.per_device, speed.aggregate)
    )
    step = f"a step is the slowest of {case.ranks} ranks'"
    return f"{numbers.headline}; {step}; aggregate {together} {unit}, per rank {each} {unit}"


def exchanged(found: Told | None) -> str:
    """Of the latest process; empty: nothing was exchanged."""
    if not found:
        return ""
    size, seconds = scaled(found["bytes"], "B"), duration(median(found["seconds"]))
    rate = RATE(found["bus_bytes_per_second"])
    whole = f"{size} of each rank by {found['backend']} take {seconds}, {rate} over each link."
    if "latency_seconds" not in found:
        return whole
    tiny, link = between(found["latency_seconds"], duration), found["bandwidth_bytes_per_second"]
    if link is None:
        return f"{whole} One number takes {tiny}, as long as all of it: it is latency."
    return f"{whole} One number takes {tiny}: that is latency, and the rest is {between(link, RATE)} over each link."


def peaks_of(case: Case) -> int:
    """Ranks on GPUs have a peak each, those that share a node's CPU have one together."""
    return 1 if case.ranks == 1 else case.nodes if case.device == "cpu" else case.ranks
