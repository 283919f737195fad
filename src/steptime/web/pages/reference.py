"""The API reference: the names of a query, from the catalogue, and the routes, from OpenAPI."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from steptime.index.query import CHOICES
from steptime.web.context import PageContext

PATH = "/reference"
TITLE = "API reference"
ORDER = None


def add(server: FastAPI, context: PageContext) -> None:
    @server.get(PATH, response_class=HTMLResponse)
    def reference_page() -> Response:
        """This page."""
        # Made from OpenAPI, so that no route can be forgotten.
        routes = _list_routes(server.openapi()["paths"])
        return context.page("reference.html", current="", routes=routes, choices=CHOICES)


def _list_routes(paths: dict[str, Any]) -> list[dict[str, Any]]:
    routes = []
    for path, methods in paths.items():
        for method, operation in methods.items():
            parameters = {item["name"] for item in operation.get("parameters", ())}
            route = {
                "method": method.upper(),
                "path": path,
                "returns": operation.get("description") or operation.get("summary", ""),
                "takes_query": "by" in parameters,
            }
            routes.append(route)
    return routes
