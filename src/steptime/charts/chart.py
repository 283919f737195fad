"""Points as a Vega-Lite chart: one value that the page, the picture and the report draw alike."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from steptime.index.catalogue import DIMENSIONS, METRICS, format_value
from steptime.index.index import Point
from steptime.index.query import FEWEST, Query, describe_condition

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Okabe and Ito's colours, which people who see colours differently can tell apart.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#999999",
    "#000000",
    "#B8A000",
    "#7B4FA3",
)
MOST_NAMES, MOST_COLOURS, MOST_SMALL_CHARTS = (
    40,
    30,
    24,
)  # that can be read below an axis, in a legend, on a page
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)


def make_spec(
    query: Query, points: list[Point], known: Callable[[str], list[str]], unit: str = ""
) -> dict[str, Any]:
    """Points unless bars are asked for and have a base. Thin lines are the intervals. `known`: all values that a
    dimension has anywhere, so that one keeps its colour whatever is shown beside it. `unit`: of all points alike."""
    by, points = ("series", *query.by) if query.series else query.by, readable_points(query, points)
    coloured, shaped = (by, ()) if query.bars else (by[:1], by[1:])  # a bar has no shape
    series = sorted(name for name, _ in query.series)
    colour, shape = (
        _channel(names, series if names == ("series",) else _all(names, known), points, marks)
        for names, marks in ((coloured, ("color", PALETTE)), (shaped, ("shape", SHAPES)))
    )
    places = {}
    if by and query.x in DIMENSIONS and (query.bars or not DIMENSIONS[query.x].number):
        order = colour["color"]["scale"].get(
            "domain"
        )  # as bars have it by themselves: their intervals must agree
        side_by_side = {
            "field": _field(coloured),
            "type": "nominal",
            **({"sort": order} if order else {}),
        }
        places = {"xOffset": side_by_side}
    told = {
        "y": any(p.low is not None for p in points),
        "x": any(p.x_low is not None for p in points),
    }
    ends = [end for end in ("y", *(["x"] if query.x in METRICS else [])) if told[end]]
    tips = {"tooltip": [{"field": name} for name in ("x", "value", "n", *by, "run")]}
    layers = [_interval(query, end, places if query.bars else {**colour, **places}) for end in ends]
    layers = _marks(query, {**colour, **shape}, {**places, **tips}, layers)
    for layer in layers:
        layer["encoding"]["y"]["title"] = _label(query, unit)
    picture: dict[str, Any] = {"layer": layers, "width": 560, "height": 340}
    if query.split:
        facet = {"field": query.split, "type": "nominal", "title": DIMENSIONS[query.split].label}
        picture = {"facet": facet, "spec": {**picture, "width": 300, "height": 240}, "columns": 2}
    values = [_value(query, (coloured, shaped), point) for point in points]
    return {"$schema": SCHEMA, "title": _title(query), "data": {"values": values}, **picture}


def _marks(
    query: Query, looks: dict[str, Any], beside: dict[str, Any], intervals: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What lies under what: bars under their intervals, points over them."""
    encoding = {**_axes(query), **looks, **beside}
    if query.bars:
        return [{"mark": "bar", "encoding": encoding}, *intervals]
    points = {"mark": {"type": "point", "filled": True, "size": 80}, "encoding": encoding}
    if query.mark != "line":
        return [*intervals, points]
    apart = {"detail": looks["shape"]} if "shape" in looks else {}
    lines = {
        **_axes(query),
        **{name: one for name, one in looks.items() if name == "color"},
        **apart,
    }
    return [{"mark": {"type": "line", "opacity": 0.6}, "encoding": lines}, *intervals, points]


def _value(query: Query, channels: tuple[tuple[str, ...], ...], point: Point) -> dict[str, Any]:
    x = point.x if query.x in METRICS else point.groups[query.x]
    ends = {"low": point.low, "high": point.high, "x_low": point.x_low, "x_high": point.x_high}
    words = {_field(names): _word(names, point) for names in channels if names}
    return {
        "x": x,
        "value": point.value,
        **ends,
        "n": point.n,
        "run": point.run,
        **point.groups,
        **words,
    }


def _all(names: tuple[str, ...], known: Callable[[str], list[str]]) -> list[str]:
    """As the points spell them: 50, not 50.0."""
    if len(names) != 1:
        return []
    numbers = names[0] in DIMENSIONS and DIMENSIONS[names[0]].number
    return (
        [format_value(value) for value in sorted(map(float, known(names[0])))]
        if numbers
        else sorted(known(names[0]))
    )


def readable_points(query: Query, points: list[Point]) -> list[Point]:
    """Of an axis, a legend or small charts with too many names, those that most runs speak of; the table has all."""
    limits = {**dict.fromkeys(query.by, MOST_COLOURS), query.split: MOST_SMALL_CHARTS}
    if query.x in DIMENSIONS and not DIMENSIONS[query.x].number:
        limits |= {query.x: MOST_NAMES}
    for name in filter(None, limits):
        points = _commonest(name, limits[name], points)
    return points


def _commonest(name: str, most: int, points: list[Point]) -> list[Point]:
    counts: Counter[str] = Counter()
    for point in points:
        counts[str(point.groups[name])] += point.n
    kept = dict(counts.most_common(most))
    return [point for point in points if str(point.groups[name]) in kept]


def _channel(
    names: tuple[str, ...],
    values: list[str],
    points: list[Point],
    marks: tuple[str, tuple[str, ...]],
) -> dict[str, Any]:
    """Each value has its own mark, found from its name; of two that want the same one, the later by name moves on.
    The legend names those that are there."""
    if not names:
        return {}
    channel, known = marks
    there = {_word(names[:1], point) for point in points}
    title = ", ".join(DIMENSIONS[name].label for name in names if name in DIMENSIONS)
    field: dict[str, Any] = {"field": _field(names), "type": "nominal", "title": title or None}
    if not values:
        return {channel: {**field, "scale": {"range": list(known)}}}
    scale = _scale(values, known)
    kept = [pair for pair in zip(scale["domain"], scale["range"], strict=True) if pair[0] in there]
    field["scale"] = {"domain": [value for value, _ in kept], "range": [mark for _, mark in kept]}
    return {channel: field}


def _scale(values: list[str], marks: tuple[str, ...]) -> dict[str, Any]:
    taken: dict[int, str] = {}
    for value in values[: len(marks)]:
        place = zlib.crc32(value.encode()) % len(marks)
        while place in taken:
            place = (place + 1) % len(marks)
        taken[place] = value
    chosen = {value: marks[place] for place, value in taken.items()}
    rest = {value: marks[zlib.crc32(value.encode()) % len(marks)] for value in values}
    return {"domain": values, "range": [chosen.get(value, rest[value]) for value in values]}


def _field(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else " ".join(names)


def _word(names: tuple[str, ...], point: Point) -> str:
    values = [point.groups.get(name) for name in names]
    return " ".join("–" if value is None else format_value(value) for value in values)


def _axes(query: Query) -> dict[str, Any]:
    y: dict[str, Any] = {"field": "value", "type": "quantitative"}
    y["scale"] = {"zero": True} if query.bars else _axis_scale("y" in query.log)
    if query.x in METRICS:
        x = {
            "field": "x",
            "type": "quantitative",
            "title": METRICS[query.x].axis,
            "scale": _axis_scale("x" in query.log),
        }
    else:
        known = DIMENSIONS[query.x]
        log = {"scale": {"type": "log"}} if known.number and "x" in query.log else {}
        kind = "nominal" if not known.number else "ordinal" if query.bars else "quantitative"
        x = {"field": "x", "type": kind, "title": known.label, **({} if query.bars else log)}
        x |= {"axis": {"labelAngle": 0}} if known.number else {}
    return {"x": x, "y": y}


def _axis_scale(log: bool) -> dict[str, Any]:
    return {"type": "log"} if log else {"zero": False}


def _interval(query: Query, end: str, colour: dict[str, Any]) -> dict[str, Any]:
    axes = _axes(query)
    low, high = ("low", "high") if end == "y" else ("x_low", "x_high")
    axes[end] = {**axes[end], "field": low}
    mark = {"type": "rule", "opacity": 0.6, **({"color": "#555555"} if query.bars else {})}
    return {"mark": mark, "encoding": {**axes, f"{end}2": {"field": high}, **colour}}


def _label(query: Query, unit: str) -> str:
    metric = METRICS[query.y]
    if query.rel:
        value = query.rel.partition(":")[2]
        return f"{metric.label}, of {f'the {value}' if value == FEWEST else value}'s"
    axis = metric.axis_of(unit)
    spread = " ± standard deviation" if query.err == "deviation" else ""
    return axis if query.x in METRICS else f"{axis} ({query.agg}{spread})"


def _title(query: Query) -> dict[str, Any]:
    fixed = ", ".join(describe_condition(key, *values) for key, values in query.where)
    labels = (METRICS.get(name) or DIMENSIONS[name] for name in (query.y, query.x))
    return {"text": " against ".join(known.label for known in labels), "subtitle": fixed}


def make_history_spec(
    query: Query, rows: list[dict[str, Any]], changed: Collection[str] = ()
) -> dict[str, Any]:
    """The metric of each run at the moment when it started; `changed` are the runs at which a level changes."""
    names = ("started", query.y, f"{query.y}_low", f"{query.y}_high", "id", "framework_version")
    values = [
        {**{name: row.get(name) for name in names}, "change": row["id"] in changed} for row in rows
    ]
    counted = {row.get("unit") or "" for row in rows}
    title = METRICS[query.y].axis_of(counted.pop() if len(counted) == 1 else "")
    x = {"field": "started", "type": "temporal", "title": "Started"}
    y = {
        "field": query.y,
        "type": "quantitative",
        "title": title,
        "scale": _axis_scale("y" in query.log),
    }
    ends = {"y": {**y, "field": f"{query.y}_low"}, "y2": {"field": f"{query.y}_high"}}
    tips = [{"field": name} for name in ("started", query.y, "framework_version", "id")]
    spans = any(value[f"{query.y}_low"] is not None for value in values)
    layers = [
        {"transform": [{"filter": {"field": "change", "equal": True}}],
         "mark": {"type": "rule", "strokeDash": [4, 3], "color": PALETTE[5]}, "encoding": {"x": x}},
        {"mark": {"type": "rule", "opacity": 0.6}, "encoding": {"x": x, **ends}},
        {"mark": {"type": "point", "filled": True, "color": PALETTE[0]}, "encoding": {"x": x, "y": y, "tooltip": tips}},
    ]  # fmt: skip
    there = [
        layer
        for layer, is_there in zip(layers, (bool(changed), spans, True), strict=True)
        if is_there
    ]
    return {
        "$schema": SCHEMA,
        "data": {"values": values},
        "layer": there,
        "width": 720,
        "height": 300,
    }
