"""A record's steps as charts: each over time with the warm-up shaded, and their distribution."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from steptime.charts.chart import SCHEMA
from steptime.charts.colours import PALETTE
from steptime.core.measurement import Measurement
from steptime.core.record import Record

# Of a chart: more are thinned evenly.
MOST_STEPS = 4000
WARM_UP = "warm-up"
MEASURED = "measured"
GREY = "#777777"


def strip_spec(record: Record) -> dict[str, Any]:
    """The time of every step, process by process."""
    x = {"field": "sample", "type": "quantitative", "title": "Sample"}
    y = {"field": "ms", "type": "quantitative", "title": "Step, ms", "scale": {"zero": False}}
    scale = {"domain": [MEASURED, WARM_UP], "range": [PALETTE[0], GREY]}
    color = {"field": "part", "type": "nominal", "title": None, "scale": scale}
    last_sample = {"op": "max", "field": "sample", "as": "end"}
    warm_up = {
        "transform": [
            {"filter": {"field": "part", "equal": WARM_UP}},
            {"aggregate": [last_sample], "groupby": ["process"]},
            {"calculate": "0", "as": "sample"},
        ],
        "mark": {"type": "rect", "color": GREY, "opacity": 0.18},
        "encoding": {"x": x, "x2": {"field": "end"}},
    }
    points = {
        "mark": {"type": "point", "filled": True, "size": 10},
        "encoding": {"x": x, "y": y, "color": color},
    }
    return {
        "$schema": SCHEMA,
        "data": {"values": _make_samples(record)},
        "columns": 3,
        "facet": {"field": "process", "type": "nominal", "title": "Process"},
        "spec": {"layer": [warm_up, points], "width": 240, "height": 120},
    }


def _make_samples(record: Record) -> list[dict[str, Any]]:
    samples = []
    for process, measurement in enumerate(record.measurements):
        times = _milliseconds(measurement)
        every = max(1, len(times) * len(record.measurements) // MOST_STEPS)
        for number in range(0, len(times), every):
            stage = WARM_UP if number < measurement.cut else MEASURED
            sample = {"sample": number, "ms": times[number], "process": process, "part": stage}
            samples.append(sample)
    return samples


def histogram_spec(record: Record) -> dict[str, Any]:
    """The distribution of the measured steps, without warm-up."""
    times: list[float] = []
    for measurement in record.measurements:
        times += _milliseconds(measurement)[measurement.cut :]
    every = max(1, len(times) // MOST_STEPS)
    x = {"field": "ms", "type": "quantitative", "bin": {"maxbins": 60}, "title": "Step, ms"}
    y = {"aggregate": "count", "title": "Samples"}
    return {
        "$schema": SCHEMA,
        "data": {"values": [{"ms": time} for time in times[::every]]},
        "mark": {"type": "bar", "color": PALETTE[0]},
        "encoding": {"x": x, "y": y},
        "width": 560,
        "height": 160,
    }


def _milliseconds(measurement: Measurement) -> list[float]:
    """The time of a step in each sample, by the device's clock if it has one."""
    # A sample may be a group of steps, timed together.
    durations = measurement.device_ns or [b - a for a, b in pairwise(measurement.stamps)]
    return [duration / measurement.group / 1e6 for duration in durations]
