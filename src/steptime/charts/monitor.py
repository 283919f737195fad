"""What a monitor saw of a run's processes over time, for its page: charts, and the numbers in them as a table."""

from __future__ import annotations

from typing import Any

from steptime.analysis.usage import Points, usage, usage_series
from steptime.charts.step_profile import make_readings_spec
from steptime.core.record import Record

MEBI = 1 << 20
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
BOARD = {
    "utilisation": ("busy share", 1.0),
    "memory_bytes": ("memory, MiB", MEBI),
    "sm_clock_mhz": ("clock, MHz", 1.0),
    "temperature_c": ("temperature, °C", 1.0),
    "power_w": ("power, W", 1.0),
}
MOST_POINTS = 200  # of one process in one chart


def monitor_view(record: Record) -> dict[str, Any] | None:
    """None: nobody watched."""
    values = []
    for number, attempt in enumerate(record.attempts):
        for name, points in usage_series(attempt).items():
            if (channel := _channel(name)) and any(value for _, value in points):
                values += _drawn(points, *channel, str(number))
    seen = [found for attempt in record.attempts if (found := usage(attempt))]
    if not seen:
        return None
    labels = list(dict.fromkeys(value["what"] for value in values))
    rows = [
        _row(label, [value["value"] for value in values if value["what"] == label])
        for label in labels
    ]
    shares = [found["monitor_share"] for found in seen if "monitor_share" in found]
    told = dict.fromkeys(
        word for found in seen for word in (*found.get("absent", ()), found.get("problem")) if word
    )
    parts = list(dict.fromkeys(found["partial"] for found in seen if "partial" in found))
    about = {"share": max(shares, default=None), "told": list(told), "partial": parts}
    return {"spec": make_readings_spec(values), "rows": rows, **about}


def _channel(name: str) -> tuple[str, float] | None:
    board, dot, what = name.partition(".")
    if not dot:
        return CHANNELS.get(name)
    return (f"{board} {BOARD[what][0]}", BOARD[what][1]) if what in BOARD else None


def _drawn(points: Points, label: str, size: float, process: str) -> list[dict[str, Any]]:
    kept = points[:: -(-len(points) // MOST_POINTS)]
    return [
        {"seconds": time, "value": value / size, "what": label, "process": process}
        for time, value in kept
    ]


def _row(label: str, values: list[float]) -> dict[str, Any]:
    return {
        "what": label,
        "least": min(values),
        "mean": sum(values) / len(values),
        "most": max(values),
    }
