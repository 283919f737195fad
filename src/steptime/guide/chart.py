"""Points as a Vega-Lite chart: one value that the page, the picture and the report draw alike."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.index import Point
from steptime.guide.query import Query

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Okabe and Ito's colours, which people who see colours differently can tell apart.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#000000", "#B8A000", "#7B4FA3")
MOST_NAMES = 40  # that can be read below an axis
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")


def spec(query: Query, points: list[Point], known: Callable[[str], list[str]]) -> dict[str, Any]:
    """Points, never bars: a bar on a log axis has no base. Thin lines are the intervals. `known`: all values that a
    dimension has anywhere, so that one keeps its colour whatever is shown beside it."""
    by, points = ("series", *query.by) if query.series else query.by, readable(query, points)
    colour, shape = (
        _channel(names, [n for n, _ in query.series] if names == ("series",) else _all(names, known), points, marks)
        for names, marks in ((by[:1], ("color", PALETTE)), (by[1:], ("shape", SHAPES)))
    )
    tips = [{"field": name} for name in ("x", "value", "n", *by, "run")]
    marks = {
        "mark": {"type": "point", "filled": True, "size": 80},
        "encoding": {**_axes(query), **colour, **shape, "tooltip": tips},
    }
    if by and query.x in DIMENSIONS and not DIMENSIONS[query.x].number:  # side by side, not on top of each other
        colour = {**colour, "xOffset": {"field": _field(by[:1]), "type": "nominal"}}
        marks["encoding"] = {**marks["encoding"], **colour}
    told = {"y": any(p.low is not None for p in points), "x": any(p.x_low is not None for p in points)}
    ends = [end for end in ("y", *(["x"] if query.x in METRICS else [])) if told[end]]
    picture: dict[str, Any] = {"layer": [*(_interval(query, end, colour) for end in ends), marks]}
    picture |= {"width": 560, "height": 340}
    if query.split:
        facet = {"field": query.split, "type": "nominal", "title": DIMENSIONS[query.split].label}
        picture = {"facet": facet, "spec": {**picture, "width": 300, "height": 240}, "columns": 2}
    values = [_value(query, by, point) for point in points]
    return {"$schema": SCHEMA, "title": _title(query), "data": {"values": values}, **picture}


def _value(query: Query, by: tuple[str, ...], point: Point) -> dict[str, Any]:
    x = point.x if query.x in METRICS else point.groups[query.x]
    ends = {"low": point.low, "high": point.high, "x_low": point.x_low, "x_high": point.x_high}
    words = {_field(names): _word(names, point) for names in (by[:1], by[1:]) if names}
    return {"x": x, "value": point.value, **ends, "n": point.n, "run": point.run, **point.groups, **words}


def _all(names: tuple[str, ...], known: Callable[[str], list[str]]) -> list[str]:
    return known(names[0]) if len(names) == 1 else []


def readable(query: Query, points: list[Point]) -> list[Point]:
    """Of an axis with too many names, those that most runs speak of; the table has all."""
    if query.x in METRICS or DIMENSIONS[query.x].number:
        return points
    counts: Counter[str] = Counter()
    for point in points:
        counts[str(point.groups[query.x])] += point.n
    kept = dict(counts.most_common(MOST_NAMES))
    return [point for point in points if str(point.groups[query.x]) in kept]


def _channel(
    names: tuple[str, ...], values: list[str], points: list[Point], marks: tuple[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Each value has its own mark, found from its name; of two that want the same one, the later by name moves on.
    The legend names those that are there."""
    if not names:
        return {}
    channel, known = marks
    there = {str(point.groups.get(names[0])) for point in points}
    title = ", ".join(DIMENSIONS[name].label for name in names if name in DIMENSIONS)
    field: dict[str, Any] = {"field": _field(names), "type": "nominal", "title": title or None}
    if values:
        scale = _scale(sorted(values), known)
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
    return " ".join(str(point.groups.get(name)) for name in names)


def _axes(query: Query) -> dict[str, Any]:
    y = {"field": "value", "type": "quantitative", "title": _label(query), "scale": _axis_scale("y" in query.log)}
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
        x = {"field": "x", "type": "quantitative" if known.number else "nominal", "title": known.label, **log}
    return {"x": x, "y": y}


def _axis_scale(log: bool) -> dict[str, Any]:
    return {"type": "log"} if log else {"zero": False}


def _interval(query: Query, end: str, colour: dict[str, Any]) -> dict[str, Any]:
    axes = _axes(query)
    low, high = ("low", "high") if end == "y" else ("x_low", "x_high")
    axes[end] = {**axes[end], "field": low}
    return {"mark": {"type": "rule", "opacity": 0.6}, "encoding": {**axes, f"{end}2": {"field": high}, **colour}}


def _label(query: Query) -> str:
    metric = METRICS[query.y]
    if query.rel:
        return f"{metric.label}, of {query.rel.partition(':')[2]}'s"
    return metric.axis if query.x in METRICS else f"{metric.axis} ({query.agg})"


def _title(query: Query) -> dict[str, Any]:
    fixed = ", ".join(f"{'not ' if key[0] == '!' else ''}{' or '.join(values)}" for key, values in query.where)
    labels = (METRICS.get(name) or DIMENSIONS[name] for name in (query.y, query.x))
    return {"text": " against ".join(known.label for known in labels), "subtitle": fixed}


def over_time(query: Query, rows: list[dict[str, Any]], changed: Collection[str] = ()) -> dict[str, Any]:
    """The metric of each run at the moment when it started; `changed` are the runs at which a level changes."""
    names = ("started", query.y, f"{query.y}_low", f"{query.y}_high", "id", "framework_version")
    values = [{**{name: row.get(name) for name in names}, "change": row["id"] in changed} for row in rows]
    scale = _axis_scale("y" in query.log)
    x = {"field": "started", "type": "temporal", "title": "Started"}
    y = {"field": query.y, "type": "quantitative", "title": METRICS[query.y].axis, "scale": scale}
    ends = {"y": {**y, "field": f"{query.y}_low"}, "y2": {"field": f"{query.y}_high"}}
    tips = [{"field": name} for name in ("started", query.y, "framework_version", "id")]
    spans = any(value[f"{query.y}_low"] is not None for value in values)
    layers = [
        {"transform": [{"filter": {"field": "change", "equal": True}}],
         "mark": {"type": "rule", "strokeDash": [4, 3], "color": PALETTE[5]}, "encoding": {"x": x}},
        {"mark": {"type": "rule", "opacity": 0.6}, "encoding": {"x": x, **ends}},
        {"mark": {"type": "point", "filled": True, "color": PALETTE[0]}, "encoding": {"x": x, "y": y, "tooltip": tips}},
    ]  # fmt: skip
    there = [layer for layer, is_there in zip(layers, (bool(changed), spans, True), strict=True) if is_there]
    return {"$schema": SCHEMA, "data": {"values": values}, "layer": there, "width": 720, "height": 300}
