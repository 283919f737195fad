"""What a monitor saw of a worker: rates out of its counters, and what was in use while steps were timed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from steptime.core.container import MANAGED
from steptime.core.format import byte_count, digits, percent
from steptime.core.record import Attempt, Record

COUNTERS = {
    "cpu_seconds": "cpus",
    "machine_cpu_seconds": "machine_cpus",
    "read_bytes": "read_bytes_per_second",
    "written_bytes": "written_bytes_per_second",
    "disk_read_bytes": "disk_read_bytes_per_second",
    "disk_written_bytes": "disk_written_bytes_per_second",
    "network_received_bytes": "network_received_bytes_per_second",
    "network_sent_bytes": "network_sent_bytes_per_second",
    "loopback_bytes": "loopback_bytes_per_second",
    "machine_disk_read_bytes": "machine_disk_read_bytes_per_second",
    "machine_disk_written_bytes": "machine_disk_written_bytes_per_second",
}
"""What only grows, and the name of what one learns by dividing it by time."""
OWN = ("seconds", "own_cpu_seconds")
Points = list[tuple[float, float]]


def series(attempt: Attempt) -> dict[str, Points]:
    """(seconds, value) of each thing seen: of a counter the rate between two looks, of the rest the value itself."""
    columns = (attempt.findings.get("monitor") or {}).get("columns", {})
    times = columns.get("seconds", [])
    found = {}
    for name, values in columns.items():
        points = [
            (time, value) for time, value in zip(times, values, strict=True) if value is not None
        ]
        if name not in OWN:
            found[COUNTERS.get(name, name)] = _rates(points) if name in COUNTERS else points
    return found


def usage(attempt: Attempt) -> dict[str, Any] | None:
    """Means and extremes while steps were timed; over the whole process where hardly a look fell into that time.
    None: nobody watched."""
    told = attempt.findings.get("monitor")
    if not told:
        return None
    found, looks = dict[str, Any](), 0
    for name, points in series(attempt).items():
        values = _timed(points, attempt, told.get("first_ns", 0))
        looks = max(looks, len(values))
        if values:
            found[name] = {"mean": fmean(values), "most": max(values)}
            if name.endswith(".reasons"):
                found[name] = {"any": _bits(values)}
    cost = {"monitor_share": told["cost"]["share"]} if told.get("cost") else {}
    words = {
        "absent": told.get("absent"),
        "problem": told.get("problem"),
        "partial": partial(attempt),
    }
    return {**found, "looks": looks, **cost, **{name: word for name, word in words.items() if word}}


def partial(attempt: Attempt) -> str:
    """What of its processes a monitor could not see; empty: it saw them all, or nobody watched."""
    case, told = attempt.case, attempt.findings.get("monitor") or {}
    apart = max((count or 0 for count in told.get("columns", {}).get("apart", ())), default=0)
    kind = attempt.environment.get("container", {}).get("kind", "")
    if not told.get("columns"):
        return ""
    if kind in MANAGED and not apart:
        return f"monitored: {kind}'s own process only, those in the container were not found"
    if case.ranks == 1 or case.nodes == 1 or apart >= case.ranks:
        return ""
    seen = (
        f"{apart} of {case.ranks} ranks only, those"
        if apart
        else f"of {case.ranks} ranks at most those"
    )
    return f"monitored: {seen} on {told.get('node', 'the first node')}"


def sentence(record: Record) -> str:
    """Of the last process that was watched; empty: none was."""
    seen = [found for attempt in record.attempts if (found := usage(attempt))]
    if not seen:
        return ""
    found = seen[-1]
    if "problem" in found:
        return str(found["problem"])
    words = [f"{digits(found['cpus']['mean'])} CPUs" if "cpus" in found else ""]
    words += [
        f"{byte_count(int(found['memory_bytes']['most']))} at most"
        if "memory_bytes" in found
        else ""
    ]
    words += [_rate(found, name, word) for name, word in RATES.items()]
    words += [_board(found, name.partition(".")[0]) for name in found if name.endswith(".power_w")]
    share = found.get("monitor_share")
    own = f"the monitor itself {percent(share)} of a CPU" if share is not None else ""
    return ", ".join(filter(None, [*words, own, found.get("partial", "")]))


RATES = {
    "disk_read_bytes_per_second": "read from disk",
    "disk_written_bytes_per_second": "written to disk",
    "network_received_bytes_per_second": "received",
    "network_sent_bytes_per_second": "sent",
}
LEAST_RATE = 1e5  # bytes a second: below it a rate is the machine's own noise


def _rate(found: dict[str, Any], name: str, word: str) -> str:
    mean = found.get(name, {}).get("mean", 0.0)
    return f"{byte_count(int(mean))}/s {word}" if mean >= LEAST_RATE else ""


def _board(found: dict[str, Any], name: str) -> str:
    busy, power = found.get(f"{name}.utilisation"), digits(found[f"{name}.power_w"]["mean"])
    return f"{name} {percent(busy['mean'])} busy, {power} W" if busy else f"{name} {power} W"


def _rates(points: Points) -> Points:
    return [
        (after, (new - old) / (after - before))
        for (before, old), (after, new) in pairwise(points)
        if after > before
    ]


def _timed(points: Points, attempt: Attempt, first_ns: int) -> list[float]:
    """The clock of the stamps is the machine's, so a monitor's is the same one."""
    if attempt.measurement is not None:
        begin, end = ((stamp - first_ns) / 1e9 for stamp in _ends(attempt.measurement.stamps))
        inside = [value for time, value in points if begin <= time <= end]
        if len(inside) > 1:
            return inside
    return [value for _, value in points]


def _ends(stamps: Sequence[int]) -> tuple[int, int]:
    return stamps[0], stamps[-1]


def _bits(values: Sequence[float]) -> int:
    found = 0
    for value in values:
        found |= int(value)
    return found
