"""The Performance Guide as a web page and an API: the same questions, answered by the same index."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, select_autoescape

from steptime import __version__
from steptime.core.errors import SteptimeError
from steptime.guide import explore
from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.chart import spec
from steptime.guide.drawing import drawn
from steptime.guide.index import Index, Point
from steptime.guide.query import Query, from_url

HERE = Path(__file__).parent
# Nothing from elsewhere, no inline script: imported text can be shown, never executed. Vega sets styles of elements.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
PICTURES = {"svg": "image/svg+xml", "png": "image/png", "json": "application/json"}


class Guide:
    """What the pages share: the index, and how to draw a template."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(default=True), trim_blocks=True
        )
        self.templates.filters |= {"number": number, "inline_json": inline_json}
        self.templates.globals |= {"version": __version__, "dimensions": DIMENSIONS, "metrics": METRICS, "quote": quote}

    def page(self, template: str, **values: Any) -> HTMLResponse:
        return HTMLResponse(self.templates.get_template(template).render(**values))

    def explore(self, query: Query) -> HTMLResponse:
        points, found = self.index.points(query), explore.facets(self.index, query)
        return self.page(
            "explore.html",
            query=query,
            url=query.to_url(),
            controls=explore.controls(query),
            facets=found,
            chips=explore.chips(query),
            mixes=explore.mixes(self.index, query),
            matching=self.index.matching(query),
            points=explore.table(query, points),
            spec=spec(query, points, self.index.values),
            shown_facets=[facet.name for facet in found],
        )


def app(index: Index) -> FastAPI:
    server = FastAPI(title="steptime", version=__version__, docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    server.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    server.middleware("http")(guarded)
    server.add_exception_handler(SteptimeError, refused)
    pages(server, Guide(index))
    return server


async def guarded(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await answer(request)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


async def refused(request: Request, problem: Exception) -> Response:
    """A word that nothing answers to: 422 with the sentence that names the known ones."""
    return JSONResponse({"detail": str(problem)}, status_code=422)


def pages(server: FastAPI, guide: Guide) -> None:
    @server.get("/", response_class=HTMLResponse)
    def explore_page(request: Request) -> Response:
        return guide.explore(asked(request))

    @server.get("/chart.{kind}")
    def chart_picture(kind: str, request: Request) -> Response:
        query = asked(request)
        points = guide.index.points(query)
        if kind == "csv":
            return Response(as_csv(query, points), media_type="text/csv")
        if kind not in PICTURES:
            raise SteptimeError(f"A chart is csv, {', '.join(PICTURES)}; found {kind!r}.")
        picture = drawn(f".{kind}", spec(query, points, guide.index.values))
        return Response(picture, media_type=PICTURES[kind])

    @server.get("/api/v1/catalogue")
    def catalogue() -> dict[str, Any]:
        return {
            "dimensions": [asdict(one) for one in DIMENSIONS.values()],
            "metrics": [asdict(m) for m in METRICS.values()],
        }

    @server.get("/api/v1/chart")
    def chart(request: Request) -> dict[str, Any]:
        query = asked(request)
        points = [asdict(point) for point in guide.index.points(query)]
        return {"query": query.to_url(), "points": points, "mixed": guide.index.mixed(query)}

    @server.get("/api/v1/facets")
    def facet_counts(request: Request) -> dict[str, dict[str, int]]:
        return guide.index.facets(asked(request), list(explore.FACETS))


def asked(request: Request) -> Query:
    """Empty fields of the form are no filters."""
    kept = [(key, value) for key, value in request.query_params.multi_items() if value]
    return from_url("&".join(f"{quote(key)}={quote(value)}" for key, value in kept))


def as_csv(query: Query, points: list[Point]) -> str:
    text = io.StringIO()
    names = [*(["series"] if query.series else []), *query.groups]
    writer = csv.writer(text)
    writer.writerow([*names, query.y, "low", "high", "n", "run"])
    for point in points:
        groups = [point.groups.get(name) for name in names]
        writer.writerow([*groups, point.value, point.low, point.high, point.n, point.run])
    return text.getvalue()


def number(value: float | None) -> str:
    """Four digits that matter, with thousands told apart."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def inline_json(value: Any) -> str:
    """Inside a script element no text may end it."""
    from markupsafe import Markup

    return Markup(json.dumps(value).replace("<", "\\u003c").replace("&", "\\u0026"))
