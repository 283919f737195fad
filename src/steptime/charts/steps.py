"""A record's steps as charts: each over time with the warm-up shaded, and how they are distributed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from steptime.charts.chart import PALETTE, SCHEMA
from steptime.core.measurement import Measurement
from steptime.core.record import Record

MOST_STEPS = 4000  # of a chart: more are thinned evenly
WARM_UP, MEASURED = "warm-up", "measured"


def strip_spec(record: Record) -> dict[str, Any]:
    """Every step's time, process by process."""
    values = []
    for number, measurement in enumerate(record.measurements):
        times = _milliseconds(measurement)
        thin = max(1, len(times) * len(record.measurements) // MOST_STEPS)
        for place in range(0, len(times), thin):
            part = WARM_UP if place < measurement.cut else MEASURED
            values.append({"sample": place, "ms": times[place], "process": number, "part": part})
    x = {"field": "sample", "type": "quantitative", "title": "Sample"}
    scale = {"domain": [MEASURED, WARM_UP], "range": [PALETTE[0], "#777777"]}
    shade = {
        "transform": [
            {"filter": {"field": "part", "equal": WARM_UP}},
            {"aggregate": [{"op": "max", "field": "sample", "as": "end"}], "groupby": ["process"]},
            {"calculate": "0", "as": "sample"},
        ],
        "mark": {"type": "rect", "color": "#777777", "opacity": 0.18},
        "encoding": {"x": x, "x2": {"field": "end"}},
    }
    points = {
        "mark": {"type": "point", "filled": True, "size": 10},
        "encoding": {
            "x": x,
            "y": {
                "field": "ms",
                "type": "quantitative",
                "title": "Step, ms",
                "scale": {"zero": False},
            },
            "color": {"field": "part", "type": "nominal", "title": None, "scale": scale},
        },
    }
    return {
        "$schema": SCHEMA, "data": {"values": values}, "columns": 3,
        "facet": {"field": "process", "type": "nominal", "title": "Process"},
        "spec": {"layer": [shade, points], "width": 240, "height": 120},
    }  # fmt: skip


def histogram_spec(record: Record) -> dict[str, Any]:
    """Of what was measured, without warm-up."""
    kept = [time for one in record.measurements for time in _milliseconds(one)[one.cut :]]
    thin = max(1, len(kept) // MOST_STEPS)
    axis = {"field": "ms", "type": "quantitative", "bin": {"maxbins": 60}, "title": "Step, ms"}
    return {
        "$schema": SCHEMA, "data": {"values": [{"ms": time} for time in kept[::thin]]},
        "mark": {"type": "bar", "color": PALETTE[0]},
        "encoding": {"x": axis, "y": {"aggregate": "count", "title": "Samples"}}, "width": 560, "height": 160,
    }  # fmt: skip


def _milliseconds(measurement: Measurement) -> list[float]:
    source = measurement.device_ns or [b - a for a, b in pairwise(measurement.stamps)]
    return [value / measurement.group / 1e6 for value in source]
