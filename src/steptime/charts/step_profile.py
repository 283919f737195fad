"""What a run's page shows beside its times: a look inside the same configuration, its place under the peaks, power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steptime.analysis.result import Result
from steptime.analysis.step_profile import TASK, Profile, newest_profile
from steptime.charts.chart import PALETTE, SCHEMA
from steptime.core.record import Record
from steptime.index.workspace import Workspace

CHANNELS = {"power_w": "Power, W", "sm_clock_mhz": "Clock, MHz", "temperature_c": "Temperature, °C"}
REACH = 30.0  # how far the peaks are drawn to both sides of their edge


def find_profile(workspace: Workspace, record: Record) -> Profile | None:
    """The newest profile of the same configuration."""
    return newest_profile(record.last, workspace.attempts(TASK))


@dataclass(frozen=True)
class Roofline:
    """Where a step stands: arithmetic per byte, what it reaches, and what this machine was measured to do."""

    intensity: float  # FLOP for each byte that must be moved
    reached: float  # FLOP/s
    compute: float  # peaks: FLOP/s of the number format
    bandwidth: float  # and bytes/s of a copy

    @property
    def peak(self) -> float:
        return min(self.compute, self.intensity * self.bandwidth)

    @property
    def bound(self) -> str:
        return "memory" if self.intensity * self.bandwidth < self.compute else "arithmetic"

    def spec(self) -> dict[str, Any]:
        edge = self.compute / self.bandwidth
        ends = (min(edge, self.intensity) / REACH, edge, max(edge, self.intensity) * REACH)
        line = [{"x": x, "y": min(self.compute, x * self.bandwidth), "what": "peak"} for x in ends]
        axes = {
            "x": {"field": "x", "type": "quantitative", "scale": {"type": "log"}, "title": "FLOP per byte",
                  "axis": {"tickCount": 4}},
            "y": {"field": "y", "type": "quantitative", "scale": {"type": "log"}, "title": "FLOP/s",
                  "axis": {"format": "~s", "tickCount": 4}},
        }  # fmt: skip
        point = [{"x": self.intensity, "y": self.reached, "what": "this run"}]
        return {
            "$schema": SCHEMA, "width": 460, "height": 220,
            "layer": [
                {"data": {"values": line}, "mark": {"type": "line", "color": "#55555e"}, "encoding": axes},
                {"data": {"values": point}, "mark": {"type": "point", "filled": True, "size": 120, "color": PALETTE[0]},
                 "encoding": {**axes, "tooltip": [{"field": "x"}, {"field": "y"}]}},
            ],
        }  # fmt: skip


def make_roofline(
    record: Record, numbers: Result | None, profile: Profile | None, peaks: dict[str, float]
) -> Roofline | None:
    moved = profile.findings.get("least_bytes") if profile else None
    flops, reached = (
        record.last.network.get("flops_per_step"),
        numbers and numbers.costs.model_flops_per_second,
    )
    compute, bandwidth = peaks.get(record.case.precision), peaks.get("copy")
    if not (moved and flops and reached and compute and bandwidth):
        return None
    return Roofline(flops / moved, reached, compute, bandwidth)


def power_view(record: Record) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """The board's own readings over time, as a chart and as rows of a table; None: no board told any."""
    values = [
        value for number, one in enumerate(record.measurements) for value in _readings(number, one)
    ]
    told = [name for name in CHANNELS if any(value["what"] == CHANNELS[name] for value in values)]
    if not told:
        return None
    rows = []
    for name in told:
        readings = [value["value"] for value in values if value["what"] == CHANNELS[name]]
        mean = sum(readings) / len(readings)
        rows.append(
            {"what": CHANNELS[name], "least": min(readings), "mean": mean, "most": max(readings)}
        )
    return make_readings_spec(values), rows


def _readings(process: int, measurement: Any) -> list[dict[str, Any]]:
    found, seconds = [], 0.0
    for block in measurement.blocks:
        seconds += block.host_ns / 1e9
        found += [
            {"seconds": seconds, "value": block.gpu[name], "what": label, "process": str(process)}
            for name, label in CHANNELS.items()
            if block.gpu and name in block.gpu
        ]
    return found


def make_readings_spec(values: list[dict[str, Any]]) -> dict[str, Any]:
    """A small chart for each `what`, a line for each process."""
    encoding = {
        "x": {"field": "seconds", "type": "quantitative", "title": "Seconds"},
        "y": {"field": "value", "type": "quantitative", "title": None, "scale": {"zero": False}},
        "color": {
            "field": "process",
            "type": "nominal",
            "title": "Process",
            "scale": {"range": list(PALETTE)},
        },
    }
    return {
        "$schema": SCHEMA, "data": {"values": values}, "columns": 3, "resolve": {"scale": {"y": "independent"}},
        "facet": {"field": "what", "type": "nominal", "title": None},
        "spec": {"mark": {"type": "line", "point": True}, "encoding": encoding, "width": 240, "height": 140},
    }  # fmt: skip
