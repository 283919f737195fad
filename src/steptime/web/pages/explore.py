"""The start page: a chart of any query, linked filters with counts, and the chart's data."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.analysis.scaling.speedup import METHOD
from steptime.charts.chart import make_spec
from steptime.charts.draw import draw
from steptime.core.errors import SteptimeError
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.index import Point
from steptime.index.query import Query
from steptime.index.scaling import scaling_tables
from steptime.web.context import PageContext, read_query
from steptime.web.explore_view import FACETS, explore_values, table_lines
from steptime.web.parameters import QUERY_PARAMETERS

PATH = "/"
TITLE = "Explore"
ORDER = 1

PICTURES = {"svg": "image/svg+xml", "png": "image/png", "json": "application/json"}


def add(server: FastAPI, context: PageContext) -> None:
    workspace = context.workspace

    @server.get(PATH, response_class=HTMLResponse, openapi_extra=QUERY_PARAMETERS)
    def explore_page(request: Request) -> Response:
        """The chart, linked filters with counts, what a point mixes, the data as a table."""
        values = explore_values(workspace.index, read_query(request))
        return context.page("explore.html", current=PATH, **values)

    @server.get("/chart.{kind}", openapi_extra=QUERY_PARAMETERS)
    def chart_file(kind: str, request: Request) -> Response:
        """This chart as svg, png, csv, or json (its Vega-Lite)."""
        query = read_query(request)
        index = workspace.index
        points = index.points(query)
        if kind == "csv":
            return Response(make_csv(query, points), media_type="text/csv")
        # In the path rather than a parameter, so that a browser saves it with its suffix.
        if kind not in PICTURES:
            raise SteptimeError(f"A chart is csv, {', '.join(PICTURES)}; found {kind!r}.")
        spec = make_spec(query, points, index.values, index.unit(query))
        return Response(draw(f".{kind}", spec), media_type=PICTURES[kind])

    @server.get("/api/v1/chart", openapi_extra=QUERY_PARAMETERS)
    def chart_json(request: Request) -> dict[str, Any]:
        """The points, and what they mix."""
        query = read_query(request)
        index = workspace.index
        points = [asdict(point) for point in index.points(query)]
        return {"query": query.to_url(), "points": points, "mixed": index.mixed_dimensions(query)}

    @server.get("/api/v1/scaling", openapi_extra=QUERY_PARAMETERS)
    def scaling_json(request: Request) -> dict[str, Any]:
        """Speed-up and efficiency, if x is devices or threads."""
        query = read_query(request)
        tables = [table.to_dict() for table in scaling_tables(workspace.index, query)]
        return {"query": query.to_url(), "method": METHOD, "tables": tables}

    @server.get("/api/v1/facets", openapi_extra=QUERY_PARAMETERS)
    def facets_json(request: Request) -> dict[str, dict[str, int]]:
        """How many runs each value of a filter would leave."""
        return workspace.index.facets(read_query(request), list(FACETS))

    @server.get("/api/v1/catalogue")
    def catalogue_json() -> dict[str, Any]:
        """Every dimension and every metric."""
        return {
            "dimensions": [asdict(dimension) for dimension in DIMENSIONS.values()],
            "metrics": [asdict(metric) for metric in METRICS.values()],
        }


def make_csv(query: Query, points: list[Point]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    names = ["value", "low", "high", "n", "run"]
    titles = [query.y, "low", "high", "n", "run"]
    if query.x in METRICS:
        names.insert(0, "x")
        titles.insert(0, query.x)
    writer.writerow([*query.columns, *titles])
    for line in table_lines(query, points):
        values = [line[name] for name in names]
        writer.writerow([*line["groups"], *values])
    return text.getvalue()
