"""A query's rows as a Vega-Lite chart: one value that the page, the picture and the report draw alike."""

from __future__ import annotations

import zlib
from typing import Any

from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.query import Query
from steptime.guide.rows import Row

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Okabe and Ito's colours, which people who see colours differently can tell apart.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#000000", "#B8A000", "#7B4FA3")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")


def spec(query: Query, rows: list[Row], known: list[Row]) -> dict[str, Any]:
    """Points, never bars: a bar on a log axis has no base. Thin lines are the intervals. `known`: every row that there
    is, so that a value keeps its colour whatever is shown beside it."""
    colour, shape = _channel(query.by[:1], known, "color", PALETTE), _channel(query.by[1:], known, "shape", SHAPES)
    tips = [{"field": name} for name in (query.x, query.y, *query.by, "id")]
    points = {
        "mark": {"type": "point", "filled": True, "size": 80},
        "encoding": {**_axes(query), **colour, **shape, "tooltip": tips},
    }
    intervals = [_interval(query, end, colour) for end in ("x", "y") if getattr(query, end) in METRICS]
    picture: dict[str, Any] = {"layer": [*intervals, points], "width": 560, "height": 340}
    if query.split:
        facet = {"field": query.split, "type": "nominal", "title": DIMENSIONS[query.split].label}
        picture = {"facet": facet, "spec": {**picture, "width": 300, "height": 240}, "columns": 2}
    values = [_point(query, row) for row in rows]
    return {"$schema": SCHEMA, "title": _title(query), "data": {"values": values}, **picture}


def _point(query: Query, row: Row) -> Row:
    ends = [name for end in (query.x, query.y) for name in (end, f"{end}_low", f"{end}_high")]
    words = {_field(names): _word(names, row) for names in (query.by[:1], query.by[1:]) if names}
    return {**{name: row.get(name) for name in (*ends, *query.by, query.split, "id") if name in row}, **words}


def _channel(names: tuple[str, ...], known: list[Row], channel: str, marks: tuple[str, ...]) -> dict[str, Any]:
    """Each value has its own mark, found from its name; of two that want the same one, the later by name moves on."""
    if not names:
        return {}
    values = sorted({_word(names, row) for row in known})
    taken: dict[int, str] = {}
    for value in values[: len(marks)]:
        place = zlib.crc32(value.encode()) % len(marks)
        while place in taken:
            place = (place + 1) % len(marks)
        taken[place] = value
    chosen = {value: marks[place] for place, value in taken.items()}
    scale = {"domain": values, "range": [chosen.get(value, marks[-1]) for value in values]}
    title = ", ".join(DIMENSIONS[name].label for name in names)
    return {channel: {"field": _field(names), "type": "nominal", "title": title, "scale": scale}}


def _field(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else " ".join(names)


def _word(names: tuple[str, ...], row: Row) -> str:
    return " ".join(str(row.get(name)) for name in names)


def _axes(query: Query) -> dict[str, Any]:
    return {end: _axis(getattr(query, end), log=end in query.log) for end in ("x", "y")}


def _axis(name: str, *, log: bool) -> dict[str, Any]:
    if name in METRICS:
        scale = {"type": "log"} if log else {"zero": False}
        return {"field": name, "type": "quantitative", "title": METRICS[name].axis, "scale": scale}
    kind = "quantitative" if DIMENSIONS[name].number else "nominal"
    scale = {"type": "log"} if log else {}
    return {"field": name, "type": kind, "title": DIMENSIONS[name].label, "scale": scale}


def _interval(query: Query, end: str, colour: dict[str, Any]) -> dict[str, Any]:
    name, axes = getattr(query, end), _axes(query)
    axes[end] = {**axes[end], "field": f"{name}_low"}
    ends = {**axes, f"{end}2": {"field": f"{name}_high"}, **colour}
    return {"mark": {"type": "rule", "opacity": 0.6}, "encoding": ends}


def _title(query: Query) -> dict[str, Any]:
    fixed = ", ".join(f"{'not ' if key[0] == '!' else ''}{' or '.join(values)}" for key, values in query.where)
    labels = (METRICS.get(name) or DIMENSIONS[name] for name in (query.y, query.x))
    return {"text": " against ".join(known.label for known in labels), "subtitle": fixed}
