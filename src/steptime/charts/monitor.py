"""What a monitor saw of a run's processes: charts over time, and their numbers as a table."""

from __future__ import annotations

from typing import Any

from steptime.analysis.usage import Points, usage, usage_series
from steptime.charts.readings import Reading, make_readings_spec, summarise_readings
from steptime.core.record import Record

MEBI = 1 << 20
# By the name of a series: its label, and the size of its unit.
CHANNELS = {
    "cpus": ("CPUs in use", 1.0),
    "machine_cpus": ("CPUs in use by all", 1.0),
    "memory_bytes": ("Memory, MiB", MEBI),
    "disk_read_bytes_per_second": ("Read from disk, MiB/s", MEBI),
    "disk_written_bytes_per_second": ("Written to disk, MiB/s", MEBI),
    "network_received_bytes_per_second": ("Received, MiB/s", MEBI),
    "network_sent_bytes_per_second": ("Sent, MiB/s", MEBI),
    "loopback_bytes_per_second": ("Loopback, MiB/s", MEBI),
}
BOARD_CHANNELS = {
    "utilisation": ("busy share", 1.0),
    "memory_bytes": ("memory, MiB", MEBI),
    "sm_clock_mhz": ("clock, MHz", 1.0),
    "temperature_c": ("temperature, °C", 1.0),
    "power_w": ("power, W", 1.0),
}
# Of one process in one chart.
MOST_POINTS = 200


def monitor_view(record: Record) -> dict[str, Any] | None:
    """None if no monitor ran."""
    summaries = [summary for attempt in record.attempts if (summary := usage(attempt))]
    if not summaries:
        return None
    readings: list[Reading] = []
    for number, attempt in enumerate(record.attempts):
        for name, points in usage_series(attempt).items():
            channel = _channel(name)
            # A quantity that is 0 all the time needs no chart.
            if channel and any(value for _, value in points):
                readings += _make_readings(points, channel, str(number))
    shares = [item["monitor_share"] for item in summaries if "monitor_share" in item]
    partial = [item["partial"] for item in summaries if "partial" in item]
    return {
        "spec": make_readings_spec(readings),
        "rows": summarise_readings(readings),
        "share": max(shares, default=None),
        "absent": _list_absent(summaries),
        "partial": list(dict.fromkeys(partial)),
    }


def _list_absent(summaries: list[dict[str, Any]]) -> list[str]:
    """What the monitor could not see, each once."""
    absent: list[str] = []
    for summary in summaries:
        absent += summary.get("absent", ())
        if summary.get("problem"):
            absent.append(summary["problem"])
    return list(dict.fromkeys(name for name in absent if name))


def _channel(name: str) -> tuple[str, float] | None:
    board, dot, quantity = name.partition(".")
    if not dot:
        return CHANNELS.get(name)
    if quantity not in BOARD_CHANNELS:
        return None
    label, size = BOARD_CHANNELS[quantity]
    return f"{board} {label}", size


def _make_readings(points: Points, channel: tuple[str, float], process: str) -> list[Reading]:
    label, size = channel
    # Rounded up, so that no more points remain than are allowed.
    every = -(-len(points) // MOST_POINTS)
    return [Reading(time, value / size, label, process) for time, value in points[::every]]
