"""Readings over time: a small chart for each quantity, and a table of their extremes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from steptime.charts.chart import SCHEMA
from steptime.charts.colours import PALETTE


class Reading(NamedTuple):
    seconds: float
    value: float
    label: str
    process: str


def make_readings_spec(readings: Sequence[Reading]) -> dict[str, Any]:
    """A small chart for each label, a line for each process."""
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
    chart = {
        "mark": {"type": "line", "point": True},
        "encoding": encoding,
        "width": 240,
        "height": 140,
    }
    return {
        "$schema": SCHEMA,
        "data": {"values": [reading._asdict() for reading in readings]},
        "columns": 3,
        "resolve": {"scale": {"y": "independent"}},
        "facet": {"field": "label", "type": "nominal", "title": None},
        "spec": chart,
    }


def summarise_readings(readings: Sequence[Reading]) -> list[dict[str, Any]]:
    """One row for each label: the lowest, the mean and the highest value."""
    values: dict[str, list[float]] = {}
    for reading in readings:
        values.setdefault(reading.label, []).append(reading.value)
    rows = []
    for label, numbers in values.items():
        mean = sum(numbers) / len(numbers)
        row = {"label": label, "min": min(numbers), "mean": mean, "max": max(numbers)}
        rows.append(row)
    return rows
