"""Which colour and shape each value has in a chart, and how many values a chart can show."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from steptime.index.catalogue import DIMENSIONS, format_value
from steptime.index.index import Point
from steptime.index.query import Query

# Okabe and Ito's colours, which people with colour blindness can tell apart, and two more.
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
# What can be read below an axis, in a legend, and on a page.
MOST_NAMES = 40
MOST_COLOURS = 30
MOST_SMALL_CHARTS = 24
MISSING = "–"
SERIES = ("series",)

Names = tuple[str, ...]
AllValues = Callable[[str], list[str]]


@dataclass(frozen=True)
class Channels:
    """How a chart tells its groups apart, as pieces of a Vega-Lite encoding."""

    color_names: Names
    shape_names: Names
    color: dict[str, Any]
    shape: dict[str, Any]
    offset: dict[str, Any]  # side by side at the same x

    def values(self, point: Point) -> dict[str, str]:
        """The fields that the channels read from a point."""
        fields = {}
        for names in (self.color_names, self.shape_names):
            if names:
                fields[field_of(names)] = join_values(names, point)
        return fields


def make_channels(query: Query, points: Sequence[Point], all_values: AllValues) -> Channels:
    """`all_values`: all values that a dimension has anywhere.

    So a value keeps its colour, whatever else is shown."""
    names = (*SERIES, *query.by) if query.series else query.by
    color_names, shape_names = names[:1], names[1:]
    # A bar has no shape.
    if query.bars:
        color_names, shape_names = names, ()
    color = _make_channel(query, color_names, points, all_values, PALETTE)
    shape = _make_channel(query, shape_names, points, all_values, SHAPES)
    offset: dict[str, Any] = {}
    if color_names and _has_named_positions(query):
        offset = {"field": field_of(color_names), "type": "nominal"}
        # Bars take this order by themselves, and their intervals must agree with them.
        if "domain" in color["scale"]:
            offset["sort"] = color["scale"]["domain"]
    return Channels(
        color_names=color_names,
        shape_names=shape_names,
        color={"color": color} if color else {},
        shape={"shape": shape} if shape else {},
        offset={"xOffset": offset} if offset else {},
    )


def _has_named_positions(query: Query) -> bool:
    """Whether the x axis has separate names, beside which there is room."""
    if query.x not in DIMENSIONS:
        return False
    return query.bars or not DIMENSIONS[query.x].number


def field_of(names: Names) -> str:
    return " ".join(names)


def join_values(names: Names, point: Point) -> str:
    texts = []
    for name in names:
        value = point.groups.get(name)
        texts.append(MISSING if value is None else format_value(value))
    return " ".join(texts)


def _make_channel(
    query: Query,
    names: Names,
    points: Sequence[Point],
    all_values: AllValues,
    marks: Sequence[str],
) -> dict[str, Any]:
    """The legend names only values that are shown."""
    if not names:
        return {}
    labels = [DIMENSIONS[name].label for name in names if name in DIMENSIONS]
    channel: dict[str, Any] = {
        "field": field_of(names),
        "type": "nominal",
        "title": ", ".join(labels) or None,
    }
    values = _known_values(query, names, all_values)
    if not values:
        channel["scale"] = {"range": list(marks)}
        return channel
    shown = {join_values(names[:1], point) for point in points}
    domain = [value for value in values if value in shown]
    assigned = separate_marks(domain, assign_marks(values, marks), marks)
    channel["scale"] = {"domain": domain, "range": [assigned[value] for value in domain]}
    return channel


def _known_values(query: Query, names: Names, all_values: AllValues) -> list[str]:
    """All values of a single dimension, as the points spell them: 50, not 50.0."""
    if names == SERIES:
        return sorted(name for name, _ in query.series)
    if len(names) != 1:
        return []
    values = all_values(names[0])
    if names[0] in DIMENSIONS and DIMENSIONS[names[0]].number:
        return [format_value(number) for number in sorted(map(float, values))]
    return sorted(values)


def assign_marks(values: Sequence[str], marks: Sequence[str]) -> dict[str, str]:
    """Each value has a mark that follows from its name.

    If two want the same one, the later by name takes the next that is free."""
    assigned = {value: marks[_preferred_number(value, marks)] for value in values}
    taken: set[int] = set()
    for value in values[: len(marks)]:
        number = _preferred_number(value, marks)
        while number in taken:
            number = (number + 1) % len(marks)
        taken.add(number)
        assigned[value] = marks[number]
    return assigned


def separate_marks(
    shown: Sequence[str], assigned: dict[str, str], marks: Sequence[str]
) -> dict[str, str]:
    """Gives shown values different marks if there are enough.

    With more known values than marks, two of them may have been assigned the same one."""
    if len(shown) > len(marks):
        return assigned
    separate: dict[str, str] = {}
    for value in shown:
        number = marks.index(assigned[value])
        while marks[number] in separate.values():
            number = (number + 1) % len(marks)
        separate[value] = marks[number]
    return separate


def _preferred_number(value: str, marks: Sequence[str]) -> int:
    return zlib.crc32(value.encode()) % len(marks)


def readable_points(query: Query, points: list[Point]) -> list[Point]:
    """Without the rarest values of an axis, a legend or small charts that have too many."""
    limits = dict.fromkeys(query.by, MOST_COLOURS)
    if query.split:
        limits[query.split] = MOST_SMALL_CHARTS
    if query.x in DIMENSIONS and not DIMENSIONS[query.x].number:
        limits[query.x] = MOST_NAMES
    for name, most in limits.items():
        points = _with_common_values(name, most, points)
    return points


def _with_common_values(name: str, most: int, points: list[Point]) -> list[Point]:
    counts: Counter[str] = Counter()
    for point in points:
        counts[str(point.groups[name])] += point.n
    # The table and the CSV still have all values.
    common = dict(counts.most_common(most))
    return [point for point in points if str(point.groups[name]) in common]
