"""What the explore page shows of a query: choices, facets with counts, the notice about mixing, points as a table."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, replace
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.analysis.scaling.speedup import METHOD
from steptime.charts.chart import readable, spec
from steptime.charts.draw import drawn
from steptime.core.errors import SteptimeError
from steptime.index.catalogue import DIMENSIONS, METRICS, word
from steptime.index.index import MOST_POINTS, Index, Point
from steptime.index.query import CHOICES, Query, Where, said
from steptime.index.scaling import MOST_ROWS, MOST_TABLES, grown
from steptime.web.context import Desk, asked
from steptime.web.parameters import QUESTION

FACETS = (
    "phase", "framework", "model", "precision", "mode", "device", "devices", "replica_batch", "data", "server",
    "software", "source", "effective_batch", "nodes", "interconnect", "suite", "submitter",
)  # fmt: skip
SHOWN_VALUES, MOST_LINES = 12, 2000  # of a facet, of the table
Counts = dict[
    str, dict[str, int]
]  # of each dimension its values, the commonest first, and how many runs have them
PICTURES = {"svg": "image/svg+xml", "png": "image/png", "json": "application/json"}


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/", response_class=HTMLResponse, openapi_extra=QUESTION)
    def explore_page(request: Request) -> Response:
        """The chart, linked filters with counts, what a point mixes, the chart's data as a table."""
        return desk.page("explore.html", **view(desk.index, asked(request)))

    @server.get("/chart.{kind}", openapi_extra=QUESTION)
    def chart_picture(kind: str, request: Request) -> Response:
        """Exactly this view: svg, png, csv, or json, its Vega-Lite."""
        query = asked(request)
        points = desk.index.points(query)
        if kind == "csv":
            return Response(as_csv(query, points), media_type="text/csv")
        if kind not in PICTURES:
            raise SteptimeError(f"A chart is csv, {', '.join(PICTURES)}; found {kind!r}.")
        return Response(
            drawn(f".{kind}", spec(query, points, desk.index.values, desk.index.unit(query))),
            media_type=PICTURES[kind],
        )

    @server.get("/api/v1/catalogue")
    def catalogue() -> dict[str, Any]:
        """Every dimension and every metric."""
        dimensions = [asdict(one) for one in DIMENSIONS.values()]
        return {"dimensions": dimensions, "metrics": [asdict(one) for one in METRICS.values()]}

    @server.get("/api/v1/chart", openapi_extra=QUESTION)
    def chart(request: Request) -> dict[str, Any]:
        """The points, and what they mix."""
        query = asked(request)
        points = [asdict(point) for point in desk.index.points(query)]
        return {"query": query.to_url(), "points": points, "mixed": desk.index.mixed(query)}

    @server.get("/api/v1/scaling", openapi_extra=QUESTION)
    def scaling_tables(request: Request) -> dict[str, Any]:
        """Speed-up and efficiency, where x is devices or threads."""
        query = asked(request)
        tables = grown(desk.index, query)
        return {
            "query": query.to_url(),
            "method": METHOD,
            "tables": [table.to_dict() for table in tables],
        }

    @server.get("/api/v1/facets", openapi_extra=QUESTION)
    def facet_counts(request: Request) -> dict[str, dict[str, int]]:
        """How many runs each value of a filter would leave."""
        return desk.index.facets(asked(request), list(FACETS))


def view(index: Index, query: Query) -> dict[str, Any]:
    points, mixed, unit = index.points(query), index.mixed(query), index.unit(query)
    counts = index.facets(query, list(dict.fromkeys([*FACETS, *mixed])))
    found = facets(query, {name: counts[name] for name in FACETS})
    return {
        "query": query,
        "url": query.to_url(),
        "controls": controls(query),
        "facets": found,
        "shown_facets": [facet.name for facet in found],
        "chips": chips(query),
        "series": series(query),
        "runs_url": replace(query, x="model", by=(), split="", rel="", series=()).to_url(),
        "mixes": mixes(query, mixed, counts),
        "matching": index.matching(query),
        "points": table(query, points[:MOST_LINES]),
        "count": len(points),
        "left_out": len(points) - len(readable(query, points)),
        "cut": query.x in METRICS and len(points) == MOST_POINTS,
        "unit": unit,
        "spec": spec(query, points, index.values, unit),
        "scaling": grown(index, query),
        "method": METHOD,
        "limits": (MOST_ROWS, MOST_TABLES),
    }


def as_csv(query: Query, points: list[Point]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    told = [*(["x"] if query.x in METRICS else []), "value", "low", "high", "n", "run"]
    heads = {"x": query.x, "value": query.y}
    writer.writerow([*columns(query), *(heads.get(name, name) for name in told)])
    for line in table(query, points):
        writer.writerow([*line["groups"], *(line[name] for name in told)])
    return text.getvalue()


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
    def open(self) -> bool:
        return any(choice.chosen for choice in self.choices)


def facets(query: Query, counts: Counts) -> list[Facet]:
    """Of dimensions that have something to choose. What is chosen is always shown."""
    chosen = dict(query.where)
    found = []
    for name, counted in counts.items():
        wanted = chosen.get(name, ())
        values = [*(value for value in wanted if value not in counted), *counted]
        kept = [
            value for place, value in enumerate(values) if place < SHOWN_VALUES or value in wanted
        ]
        if len(counted) > 1 or wanted:
            choices = [Choice(value, counted.get(value, 0), value in wanted) for value in kept]
            found.append(Facet(name, DIMENSIONS[name].label, choices, len(values) - len(kept)))
    return found


@dataclass(frozen=True)
class Mix:
    """A dimension of which a point holds several values, and the two ways out."""

    label: str
    count: int
    fix: str  # the same question with the commonest value only
    split: str  # the same question with small charts, or colours, of it


def mixes(query: Query, mixed: dict[str, int], counts: Counts) -> list[Mix]:
    """The commonest value is the first that the facet counts."""
    found = []
    for name, count in mixed.items():
        value = next(iter(counts[name]), "")
        split = (
            replace(query, split=name) if not query.split else replace(query, by=(*query.by, name))
        )
        found.append(
            Mix(
                DIMENSIONS[name].label,
                count,
                with_filter(query, name, value).to_url(),
                split.to_url(),
            )
        )
    return found


def with_filter(query: Query, name: str, value: str) -> Query:
    return replace(query, where=(*without(query.where, name), (name, (value,))))


def without(where: Where, name: str, value: str | None = None) -> Where:
    """Less this dimension, or less this one value of it."""
    kept = []
    for key, values in where:
        rest = () if value is None else tuple(one for one in values if one != value)
        if key != name or rest:
            kept.append((key, values if key != name else rest))
    return tuple(kept)


def chips(query: Query) -> list[tuple[str, str]]:
    """Each filter in words, with the question that lacks it."""
    return [
        (said(key, value), replace(query, where=without(query.where, key, value)).to_url())
        for key, values in query.where
        for value in values
    ]


def series(query: Query) -> list[tuple[str, str]]:
    """Each named series, with the question that lacks it."""
    return [
        (
            one[0],
            replace(query, series=tuple(other for other in query.series if other != one)).to_url(),
        )
        for one in query.series
    ]


def controls(query: Query) -> list[dict[str, Any]]:
    """The form's fields: each is a word of the query."""
    axes = [(name, known.label) for name, known in DIMENSIONS.items()]
    metrics = [(name, known.axis) for name, known in METRICS.items()]
    none = [("", "–")]
    return [
        _field("y", "Y", metrics, query.y),
        _field("x", "X", [*axes, *metrics], query.x),
        _field("by", "Group by", [*none, *axes], query.by[0] if query.by else ""),
        _field("by", "and by", [*none, *axes], query.by[1] if len(query.by) > 1 else "", id="by2"),
        _field("split", "Small multiples", [*none, *axes], query.split),
        *(
            _field(
                name, label, [(word, word or "–") for word in CHOICES[name]], getattr(query, name)
            )
            for name, label in (
                ("agg", "Aggregate"),
                ("err", "Error bars"),
                ("mark", "Mark"),
                ("log", "Log axis"),
                ("scaling", "Scaling"),
            )
        ),
    ]


def _field(
    name: str, label: str, options: list[tuple[str, str]], value: str, id: str = ""
) -> dict[str, Any]:
    return {"name": name, "label": label, "options": options, "value": value, "id": id or name}


def columns(query: Query) -> list[str]:
    return [*(["series"] if query.series else []), *query.groups]


def table(query: Query, points: list[Point]) -> list[dict[str, Any]]:
    """The chart's data, for people who read numbers and for those who cannot see charts."""
    names = columns(query)
    return [
        {
            "groups": [
                None if (value := point.groups.get(name)) is None else word(value) for name in names
            ],
            "x": point.x,
            "value": point.value,
            "low": point.low,
            "high": point.high,
            "n": point.n,
            "run": point.run,
        }
        for point in points
    ]
