"""A metric over time as a Vega-Lite chart, with the runs at which its level changes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from steptime.charts.chart import SCHEMA, axis_scale
from steptime.charts.colours import PALETTE
from steptime.index.catalogue import METRICS
from steptime.index.query import Query
from steptime.index.rows import Row

CHANGE_COLOUR = PALETTE[5]
RUN_COLOUR = PALETTE[0]


def make_history_spec(
    query: Query, rows: list[Row], changed: Collection[str] = ()
) -> dict[str, Any]:
    """Each run at the moment when it started. `changed`: the runs at which a level changes."""
    low, high = f"{query.y}_low", f"{query.y}_high"
    x = {"field": "started", "type": "temporal", "title": "Started"}
    y = {
        "field": query.y,
        "type": "quantitative",
        "title": METRICS[query.y].axis_of(_common_unit(rows)),
        "scale": axis_scale("y" in query.log),
    }
    tooltip = [{"field": name} for name in ("started", query.y, "framework_version", "id")]
    layers: list[dict[str, Any]] = []
    if changed:
        change = {
            "transform": [{"filter": {"field": "change", "equal": True}}],
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": CHANGE_COLOUR},
            "encoding": {"x": x},
        }
        layers.append(change)
    if any(row.get(low) is not None for row in rows):
        interval = {
            "mark": {"type": "rule", "opacity": 0.6},
            "encoding": {"x": x, "y": {**y, "field": low}, "y2": {"field": high}},
        }
        layers.append(interval)
    point = {
        "mark": {"type": "point", "filled": True, "color": RUN_COLOUR},
        "encoding": {"x": x, "y": y, "tooltip": tooltip},
    }
    layers.append(point)
    return {
        "$schema": SCHEMA,
        "data": {"values": _make_values(query, rows, changed)},
        "layer": layers,
        "width": 720,
        "height": 300,
    }


def _make_values(query: Query, rows: list[Row], changed: Collection[str]) -> list[dict[str, Any]]:
    names = ("started", query.y, f"{query.y}_low", f"{query.y}_high", "id", "framework_version")
    values = []
    for row in rows:
        value = {name: row.get(name) for name in names}
        value["change"] = row["id"] in changed
        values.append(value)
    return values


def _common_unit(rows: list[Row]) -> str:
    """What all runs count; empty if they differ."""
    units = {row.get("unit") or "" for row in rows}
    return units.pop() if len(units) == 1 else ""
