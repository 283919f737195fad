"""Points as a Vega-Lite chart, which pages, pictures and reports draw alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steptime.charts.colours import AllValues, Channels, make_channels, readable_points
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.index import Point
from steptime.index.query import FEWEST, Query, describe_condition

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# The intervals of bars, which must be seen on every colour.
DARK_GREY = "#555555"
LEAST_PADDING = 4
# Pixels by which a character may be wider than in the font of the layout.
WIDER_BY = 1.3
# Longer labels are cut.
MOST_CHARACTERS = 34
# 1,000,000 on an axis of values.
LONGEST_NUMBER = 10

Encoding = dict[str, Any]
Layer = dict[str, Any]


def make_spec(
    query: Query, points: list[Point], all_values: AllValues, unit: str = ""
) -> dict[str, Any]:
    """Thin lines are the intervals. `unit`: what all points count alike."""
    points = readable_points(query, points)
    channels = make_channels(query, points, all_values)
    axes = {"x": _x_axis(query, points), "y": _y_axis(query, unit)}
    # Later layers lie on top: lines, then intervals, then points; but bars under intervals.
    layers = _interval_layers(query, points, axes, channels)
    if query.bars:
        layers = [_bar_layer(query, axes, channels), *layers]
    else:
        layers = [*layers, _point_layer(query, axes, channels)]
    if query.mark == "line":
        layers = [_line_layer(axes, channels), *layers]
    spec: dict[str, Any] = {
        "$schema": SCHEMA,
        "title": _title(query),
        "data": {"values": [_make_value(query, channels, point) for point in points]},
    }
    if query.split:
        label = DIMENSIONS[query.split].label
        spec["facet"] = {"field": query.split, "type": "nominal", "title": label}
        spec["spec"] = {"layer": layers, "width": 300, "height": 240}
        spec["columns"] = 2
    else:
        spec |= {"layer": layers, "width": 560, "height": 340}
    return spec


def _bar_layer(query: Query, axes: Encoding, channels: Channels) -> Layer:
    return {"mark": "bar", "encoding": _mark_encoding(query, axes, channels)}


def _point_layer(query: Query, axes: Encoding, channels: Channels) -> Layer:
    mark = {"type": "point", "filled": True, "size": 80}
    return {"mark": mark, "encoding": _mark_encoding(query, axes, channels)}


def _mark_encoding(query: Query, axes: Encoding, channels: Channels) -> Encoding:
    groups = (*channels.color_names, *channels.shape_names)
    fields = ("x", "value", "n", *groups, "run")
    tooltip = {"tooltip": [{"field": name} for name in fields]}
    return axes | channels.color | channels.shape | channels.offset | tooltip


def _line_layer(axes: Encoding, channels: Channels) -> Layer:
    """Lines join the points of one colour and shape."""
    encoding = axes | channels.color
    if channels.shape:
        encoding["detail"] = channels.shape["shape"]
    return {"mark": {"type": "line", "opacity": 0.6}, "encoding": encoding}


def _interval_layers(
    query: Query, points: Sequence[Point], axes: Encoding, channels: Channels
) -> list[Layer]:
    mark = {"type": "rule", "opacity": 0.6}
    groups = channels.color | channels.offset
    if query.bars:
        mark["color"] = DARK_GREY
        groups = channels.offset
    layers = []
    if any(point.low is not None for point in points):
        ends = {"y": {**axes["y"], "field": "low"}, "y2": {"field": "high"}}
        layers.append({"mark": mark, "encoding": axes | ends | groups})
    if query.x in METRICS and any(point.x_low is not None for point in points):
        ends = {"x": {**axes["x"], "field": "x_low"}, "x2": {"field": "x_high"}}
        layers.append({"mark": mark, "encoding": axes | ends | groups})
    return layers


def _make_value(query: Query, channels: Channels, point: Point) -> dict[str, Any]:
    value = {
        "x": point.x if query.x in METRICS else point.groups[query.x],
        "value": point.value,
        "low": point.low,
        "high": point.high,
        "x_low": point.x_low,
        "x_high": point.x_high,
        "n": point.n,
        "run": point.run,
    }
    return value | point.groups | channels.values(point)


def _x_axis(query: Query, points: Sequence[Point]) -> Encoding:
    is_log = "x" in query.log
    if query.x in METRICS:
        return {
            "field": "x",
            "type": "quantitative",
            "title": METRICS[query.x].axis,
            "scale": axis_scale(is_log),
        }
    dimension = DIMENSIONS[query.x]
    axis: Encoding = {"field": "x", "type": "nominal", "title": dimension.label}
    names = [str(point.groups[query.x]) for point in points]
    axis["axis"] = {"titlePadding": _title_padding(max(map(len, names), default=0))}
    if dimension.number:
        # Below bars, numbers are names.
        axis["type"] = "ordinal" if query.bars else "quantitative"
        axis["axis"] = {"labelAngle": 0}
        if is_log and not query.bars:
            axis["scale"] = {"type": "log"}
    return axis


def _y_axis(query: Query, unit: str) -> Encoding:
    scale = {"zero": True} if query.bars else axis_scale("y" in query.log)
    return {
        "field": "value",
        "type": "quantitative",
        "title": _y_title(query, unit),
        "scale": scale,
        "axis": {"titlePadding": _title_padding(LONGEST_NUMBER)},
    }


def _title_padding(characters: int) -> int:
    """Pixels between an axis and its title.

    A picture is laid out with the widths of one font and may be shown in another, whose labels are
    a fifth wider."""
    return LEAST_PADDING + round(WIDER_BY * min(characters, MOST_CHARACTERS))


def axis_scale(is_log: bool) -> dict[str, Any]:
    return {"type": "log"} if is_log else {"zero": False}


def _y_title(query: Query, unit: str) -> str:
    metric = METRICS[query.y]
    if query.rel:
        baseline = query.rel.partition(":")[2]
        if baseline == FEWEST:
            baseline = f"the {FEWEST}"
        return f"{metric.label}, relative to {baseline}"
    axis = metric.axis_of(unit)
    # Against a metric every run is a point, so nothing is aggregated.
    if query.x in METRICS:
        return axis
    spread = " ± standard deviation" if query.err == "deviation" else ""
    return f"{axis} ({query.agg}{spread})"


def _title(query: Query) -> dict[str, Any]:
    y_label = METRICS[query.y].label
    x_label = METRICS[query.x].label if query.x in METRICS else DIMENSIONS[query.x].label
    conditions = [describe_condition(key, *values) for key, values in query.where]
    return {"text": f"{y_label} against {x_label}", "subtitle": ", ".join(conditions)}
