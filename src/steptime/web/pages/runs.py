"""All runs that match a query, newest first."""

from __future__ import annotations

import csv
import io
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from steptime.web.context import PageContext, read_query
from steptime.web.explore_view import list_chips
from steptime.web.parameters import QUERY_PARAMETERS

PATH = "/runs"
TITLE = "Runs"
ORDER = 2

PAGE_LENGTH = 50
MOST_RUNS = 1000
SHOWN_COLUMNS = (
    "model",
    "phase",
    "framework",
    "mode",
    "precision",
    "device",
    "replica_batch",
    "source",
    "grade",
    "status",
)


def add(server: FastAPI, context: PageContext) -> None:
    workspace = context.workspace

    @server.get(PATH, response_class=HTMLResponse, openapi_extra=QUERY_PARAMETERS)
    def runs_page(request: Request) -> Response:
        """All runs, newest first; failed and quarantined ones if a filter names them."""
        query = read_query(request, "after")
        after = _read_position(request.query_params.get("after", ""))
        rows = workspace.index.list_runs(query, PAGE_LENGTH, after)
        # By start and id: runs that arrive meanwhile do not shift the pages.
        next_position = ""
        if len(rows) == PAGE_LENGTH:
            next_position = f"{rows[-1]['started']}|{rows[-1]['id']}"
        return context.page(
            "runs.html",
            current=PATH,
            query=query,
            url=query.to_url(),
            rows=rows,
            more=next_position,
            columns=SHOWN_COLUMNS,
            matching=workspace.index.count_runs(query, valued=False),
            chips=list_chips(query),
        )

    @server.get("/runs.csv", openapi_extra=QUERY_PARAMETERS)
    def runs_csv(request: Request) -> Response:
        """All runs, as CSV."""
        batches = workspace.index.stream(read_query(request))
        return StreamingResponse(map(_to_csv, batches), media_type="text/csv")

    @server.get("/api/v1/runs", openapi_extra=QUERY_PARAMETERS)
    def runs_json(request: Request, limit: int = PAGE_LENGTH, after: str = "") -> dict[str, Any]:
        """All runs, as JSON, a page at a time."""
        query = read_query(request, "limit", "after")
        # Out of range is answered with the nearest possible number of runs.
        count = max(1, min(limit, MOST_RUNS))
        rows = workspace.index.list_runs(query, count, _read_position(after))
        return {"query": query.to_url(), "runs": rows}


def _to_csv(rows: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _read_position(text: str) -> tuple[str, str] | None:
    """The last run of the page before: when it started, and its id."""
    started, _, run = text.partition("|")
    return (started, run) if run else None
