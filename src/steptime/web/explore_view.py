"""What the explore page shows of a query: controls, facets with counts, mixes, a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from steptime.analysis.scaling.speedup import METHOD
from steptime.charts.chart import make_spec
from steptime.charts.colours import readable_points
from steptime.index.catalogue import DIMENSIONS, METRICS, format_value
from steptime.index.index import MOST_POINTS, Index, Point
from steptime.index.query import CHOICES, Query, Where, describe_condition
from steptime.index.scaling import MOST_ROWS, MOST_TABLES, scaling_tables

FACETS = (
    "phase",
    "framework",
    "model",
    "precision",
    "mode",
    "device",
    "devices",
    "replica_batch",
    "data",
    "server",
    "software",
    "source",
    "effective_batch",
    "nodes",
    "interconnect",
    "suite",
    "submitter",
)
# Values of a facet, and lines of the table.
SHOWN_VALUES = 12
MOST_LINES = 2000
CHOICE_LABELS = {
    "agg": "Aggregate",
    "err": "Error bars",
    "mark": "Mark",
    "log": "Log axis",
    "scaling": "Scaling",
}
# The values of each dimension, the most common first, and how many runs have them.
Counts = dict[str, dict[str, int]]
Link = tuple[str, str]  # a text and the query that it leads to
Option = tuple[str, str]  # a value and how the form shows it


def explore_values(index: Index, query: Query) -> dict[str, Any]:
    """The values of the template explore.html."""
    points = index.points(query)
    mixed = index.mixed_dimensions(query)
    unit = index.unit(query)
    # One query for the facets of the page and for what its points mix.
    counts = index.facets(query, list(dict.fromkeys([*FACETS, *mixed])))
    facets = make_facets(query, {name: counts[name] for name in FACETS})
    # A list of runs has no axes and no series.
    runs_query = replace(query, x="model", by=(), split="", rel="", series=())
    return {
        "query": query,
        "url": query.to_url(),
        "controls": make_controls(query),
        "facets": facets,
        "shown_facets": [facet.name for facet in facets],
        "chips": list_chips(query),
        "series": list_series(query),
        "runs_url": runs_query.to_url(),
        "mixes": list_mixes(query, mixed, counts),
        "matching": index.count_runs(query),
        "points": table_lines(query, points[:MOST_LINES]),
        "count": len(points),
        "left_out": len(points) - len(readable_points(query, points)),
        "is_cut": query.x in METRICS and len(points) == MOST_POINTS,
        "unit": unit,
        "spec": make_spec(query, points, index.values, unit),
        "scaling": scaling_tables(index, query),
        "method": METHOD,
        "limits": (MOST_ROWS, MOST_TABLES),
    }


@dataclass(frozen=True)
class Choice:
    value: str
    count: int
    chosen: bool


@dataclass(frozen=True)
class Facet:
    name: str
    label: str
    choices: list[Choice]
    hidden: int  # values beyond those shown

    @property
    def is_open(self) -> bool:
        return any(choice.chosen for choice in self.choices)


def make_facets(query: Query, counts: Counts) -> list[Facet]:
    """The facets with something to choose. A chosen value is always shown."""
    chosen_by_name = dict(query.where)
    facets = []
    for name, value_counts in counts.items():
        chosen = chosen_by_name.get(name, ())
        if len(value_counts) < 2 and not chosen:
            continue
        # A chosen value that no run has must still be shown, to be unticked.
        absent = [value for value in chosen if value not in value_counts]
        values = [*absent, *value_counts]
        choices = []
        for number, value in enumerate(values):
            if number < SHOWN_VALUES or value in chosen:
                choices.append(Choice(value, value_counts.get(value, 0), value in chosen))
        hidden = len(values) - len(choices)
        facets.append(Facet(name, DIMENSIONS[name].label, choices, hidden))
    return facets


@dataclass(frozen=True)
class Mix:
    """A dimension of which a point holds several values, and the two ways out."""

    label: str
    count: int
    fix: str  # the same query with the most common value only
    split: str  # the same query with small charts, or colours, for each value


def list_mixes(query: Query, mixed: dict[str, int], counts: Counts) -> list[Mix]:
    mixes = []
    for name, count in mixed.items():
        most_common = next(iter(counts[name]), "")
        fixed = with_filter(query, name, most_common)
        # A chart can be split once; a second dimension becomes a colour or shape.
        if query.split:
            split = replace(query, by=(*query.by, name))
        else:
            split = replace(query, split=name)
        mixes.append(Mix(DIMENSIONS[name].label, count, fixed.to_url(), split.to_url()))
    return mixes


def with_filter(query: Query, name: str, value: str) -> Query:
    where = tuple(pair for pair in query.where if pair[0] != name)
    return replace(query, where=(*where, (name, (value,))))


def _without_value(where: Where, name: str, value: str) -> Where:
    """The same conditions without this one value of this dimension."""
    remaining = []
    for key, values in where:
        if key == name:
            values = tuple(other for other in values if other != value)
        if values:
            remaining.append((key, values))
    return tuple(remaining)


def list_chips(query: Query) -> list[Link]:
    """Each filter in words, with the query that lacks it."""
    chips = []
    for key, values in query.where:
        for value in values:
            rest = replace(query, where=_without_value(query.where, key, value))
            chips.append((describe_condition(key, value), rest.to_url()))
    return chips


def list_series(query: Query) -> list[Link]:
    """Each named series, with the query that lacks it."""
    links = []
    for series in query.series:
        others = tuple(other for other in query.series if other != series)
        links.append((series[0], replace(query, series=others).to_url()))
    return links


def make_controls(query: Query) -> list[dict[str, Any]]:
    """The fields of the form: each is a parameter of the query."""
    dimensions = [(name, dimension.label) for name, dimension in DIMENSIONS.items()]
    metrics = [(name, metric.axis) for name, metric in METRICS.items()]
    optional = [("", "–"), *dimensions]
    # The form has two fields; further dimensions stay in hidden ones.
    first, second = [*query.by, "", ""][:2]
    controls = [
        _field("y", "Y", metrics, query.y),
        _field("x", "X", [*dimensions, *metrics], query.x),
        _field("by", "Group by", optional, first),
        _field("by", "and by", optional, second, id="by2"),
        _field("split", "Small multiples", optional, query.split),
    ]
    for name, label in CHOICE_LABELS.items():
        options = [(value, value or "–") for value in CHOICES[name]]
        controls.append(_field(name, label, options, getattr(query, name)))
    return controls


def _field(
    name: str, label: str, options: list[Option], value: str, id: str = ""
) -> dict[str, Any]:
    return {"name": name, "label": label, "options": options, "value": value, "id": id or name}


def table_lines(query: Query, points: list[Point]) -> list[dict[str, Any]]:
    """The chart's data, for people who read numbers and for those who cannot see charts."""
    lines = []
    for point in points:
        groups = []
        for name in query.columns:
            value = point.groups.get(name)
            groups.append(None if value is None else format_value(value))
        line = {
            "groups": groups,
            "x": point.x,
            "value": point.value,
            "low": point.low,
            "high": point.high,
            "n": point.n,
            "run": point.run,
        }
        lines.append(line)
    return lines
