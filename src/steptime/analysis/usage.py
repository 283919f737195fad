"""What a monitor recorded of a worker: rates of its counters, and usage while steps were timed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from steptime.core.container import MANAGED
from steptime.core.format import byte_count, digits, percent
from steptime.core.record import Attempt, Record

# Counters that only grow, and the name of their rate.
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
# Columns about the monitor itself.
MONITOR_COLUMNS = ("seconds", "own_cpu_seconds")
RATE_LABELS = {
    "disk_read_bytes_per_second": "read from disk",
    "disk_written_bytes_per_second": "written to disk",
    "network_received_bytes_per_second": "received",
    "network_sent_bytes_per_second": "sent",
}
# Bytes per second below which a rate is noise of the machine.
LEAST_RATE = 1e5
Points = list[tuple[float, float]]


def usage_series(attempt: Attempt) -> dict[str, Points]:
    """(seconds, value) by quantity: the rate of a counter between two readings, else the value."""
    columns = (attempt.findings.get("monitor") or {}).get("columns", {})
    times = columns.get("seconds", [])
    series = {}
    for name, values in columns.items():
        if name in MONITOR_COLUMNS:
            continue
        readings = zip(times, values, strict=True)
        points = [(time, value) for time, value in readings if value is not None]
        if name in COUNTERS:
            series[COUNTERS[name]] = _rates(points)
        else:
            series[name] = points
    return series


def usage(attempt: Attempt) -> dict[str, Any] | None:
    """Means and maxima while steps were timed; None if no monitor ran.

    Of the whole process if hardly a reading fell into the timed steps."""
    monitor = attempt.findings.get("monitor")
    if not monitor:
        return None
    summary: dict[str, Any] = {}
    readings = 0
    for name, points in usage_series(attempt).items():
        values = _timed_values(points, attempt, monitor.get("first_ns", 0))
        readings = max(readings, len(values))
        if values and name.endswith(".reasons"):
            summary[name] = {"any": _any_bits(values)}
        elif values:
            summary[name] = {"mean": fmean(values), "most": max(values)}
    summary["readings"] = readings
    cost = monitor.get("cost") or {}
    if "share" in cost:
        summary["monitor_share"] = cost["share"]
    for name in ("absent", "problem"):
        if monitor.get(name):
            summary[name] = monitor[name]
    missing = unseen_processes(attempt)
    if missing:
        summary["partial"] = missing
    return summary


def unseen_processes(attempt: Attempt) -> str:
    """Which processes the monitor could not see; empty if it saw all, or if none ran."""
    case = attempt.case
    monitor = attempt.findings.get("monitor") or {}
    columns = monitor.get("columns")
    if not columns:
        return ""
    seen = max((count or 0 for count in columns.get("apart", ())), default=0)
    container = attempt.environment.get("container", {}).get("kind", "")
    if container in MANAGED and not seen:
        return f"monitored: {container}'s own process only, those in the container were not found"
    if case.ranks == 1 or case.nodes == 1 or seen >= case.ranks:
        return ""
    node = monitor.get("node", "the first node")
    if seen:
        return f"monitored: {seen} of {case.ranks} ranks only, those on {node}"
    return f"monitored: of {case.ranks} ranks at most those on {node}"


def usage_sentence(record: Record) -> str:
    """Of the last process that was monitored; empty if none was."""
    summaries = [usage(attempt) for attempt in record.attempts]
    latest = next((summary for summary in reversed(summaries) if summary), None)
    if latest is None:
        return ""
    if "problem" in latest:
        return str(latest["problem"])
    clauses = []
    if "cpus" in latest:
        clauses.append(f"{digits(latest['cpus']['mean'])} CPUs")
    if "memory_bytes" in latest:
        clauses.append(f"{byte_count(int(latest['memory_bytes']['most']))} at most")
    for name, label in RATE_LABELS.items():
        mean = latest.get(name, {}).get("mean", 0.0)
        if mean >= LEAST_RATE:
            clauses.append(f"{byte_count(int(mean))}/s {label}")
    for name in latest:
        if name.endswith(".power_w"):
            clauses.append(_gpu_clause(latest, name.partition(".")[0]))
    if "monitor_share" in latest:
        clauses.append(f"the monitor itself {percent(latest['monitor_share'])} of a CPU")
    if "partial" in latest:
        clauses.append(latest["partial"])
    return ", ".join(clauses)


def _gpu_clause(summary: dict[str, Any], gpu: str) -> str:
    utilisation = summary.get(f"{gpu}.utilisation")
    power = digits(summary[f"{gpu}.power_w"]["mean"])
    if not utilisation:
        return f"{gpu} {power} W"
    return f"{gpu} {percent(utilisation['mean'])} busy, {power} W"


def _rates(points: Points) -> Points:
    rates = []
    for (before, old), (after, new) in pairwise(points):
        if after > before:
            rates.append((after, (new - old) / (after - before)))
    return rates


def _timed_values(points: Points, attempt: Attempt, first_ns: int) -> list[float]:
    """Values while steps were timed. Stamps and monitor use the same clock of the machine."""
    if attempt.measurement is not None:
        stamps = attempt.measurement.stamps
        begin = (stamps[0] - first_ns) / 1e9
        end = (stamps[-1] - first_ns) / 1e9
        inside = [value for time, value in points if begin <= time <= end]
        if len(inside) > 1:
            return inside
    return [value for _, value in points]


def _any_bits(values: Sequence[float]) -> int:
    bits = 0
    for value in values:
        bits |= int(value)
    return bits
