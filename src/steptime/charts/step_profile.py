"""What a run's page shows besides its times: its profile, its roofline, its power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steptime.analysis.result import Result
from steptime.analysis.step_profile import TASK, Profile, newest_profile
from steptime.charts.chart import SCHEMA
from steptime.charts.colours import PALETTE
from steptime.charts.readings import Reading, make_readings_spec, summarise_readings
from steptime.core.measurement import Measurement
from steptime.core.record import Record
from steptime.index.workspace import Workspace

CHANNELS = {"power_w": "Power, W", "sm_clock_mhz": "Clock, MHz", "temperature_c": "Temperature, °C"}
# How far the peaks are drawn to both sides of their edge.
REACH = 30.0
PEAK_COLOUR = "#55555e"


def find_profile(workspace: Workspace, record: Record) -> Profile | None:
    """The newest profile of the same configuration."""
    return newest_profile(record.last, workspace.attempts(TASK))


@dataclass(frozen=True)
class Roofline:
    """A step's arithmetic per byte, the rate that it reaches, and the machine's measured peaks."""

    intensity: float  # FLOP for each byte that must be moved
    reached: float  # FLOP/s
    compute: float  # the peak of the number format, FLOP/s
    bandwidth: float  # the peak of a copy, bytes/s

    @property
    def peak(self) -> float:
        return min(self.compute, self.intensity * self.bandwidth)

    @property
    def limited_by(self) -> str:
        return "memory" if self.intensity * self.bandwidth < self.compute else "arithmetic"

    def spec(self) -> dict[str, Any]:
        encoding = {
            "x": _log_axis("x", "FLOP per byte", {"tickCount": 4}),
            "y": _log_axis("y", "FLOP/s", {"format": "~s", "tickCount": 4}),
        }
        peaks = {
            "data": {"values": self._peak_line()},
            "mark": {"type": "line", "color": PEAK_COLOUR},
            "encoding": encoding,
        }
        run = {
            "data": {"values": [{"x": self.intensity, "y": self.reached, "what": "this run"}]},
            "mark": {"type": "point", "filled": True, "size": 120, "color": PALETTE[0]},
            "encoding": {**encoding, "tooltip": [{"field": "x"}, {"field": "y"}]},
        }
        return {"$schema": SCHEMA, "width": 460, "height": 220, "layer": [peaks, run]}

    def _peak_line(self) -> list[dict[str, Any]]:
        edge = self.compute / self.bandwidth
        leftmost = min(edge, self.intensity) / REACH
        rightmost = max(edge, self.intensity) * REACH
        line = []
        for x in (leftmost, edge, rightmost):
            line.append({"x": x, "y": min(self.compute, x * self.bandwidth), "what": "peak"})
        return line


def _log_axis(field: str, title: str, axis: dict[str, Any]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log"},
        "title": title,
        "axis": axis,
    }


def make_roofline(
    record: Record, numbers: Result | None, profile: Profile | None, peaks: dict[str, float]
) -> Roofline | None:
    """None if something that it needs was not measured."""
    if numbers is None or profile is None:
        return None
    moved = profile.findings.get("least_bytes")
    flops = record.last.network.get("flops_per_step")
    reached = numbers.costs.model_flops_per_second
    compute = peaks.get(record.case.precision)
    bandwidth = peaks.get("copy")
    if not (moved and flops and reached and compute and bandwidth):
        return None
    return Roofline(flops / moved, reached, compute, bandwidth)


def power_view(record: Record) -> dict[str, Any] | None:
    """The board's own readings over time, as a chart and as rows of a table; None without any."""
    readings: list[Reading] = []
    for number, measurement in enumerate(record.measurements):
        readings += _board_readings(number, measurement)
    if not readings:
        return None
    # The table has the order of the channels, whatever came first.
    order = list(CHANNELS.values())
    rows = summarise_readings(readings)
    rows.sort(key=lambda row: order.index(row["label"]))
    return {"spec": make_readings_spec(readings), "rows": rows}


def _board_readings(process: int, measurement: Measurement) -> list[Reading]:
    readings = []
    # A board is read at the end of each block.
    seconds = 0.0
    for block in measurement.blocks:
        seconds += block.host_ns / 1e9
        for name, label in CHANNELS.items():
            if block.gpu and name in block.gpu:
                readings.append(Reading(seconds, block.gpu[name], label, str(process)))
    return readings
