"""A query over time, with the runs at which its level changed."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.charts.history import make_history_spec
from steptime.index.history import CONFIGURATION, find_changes
from steptime.index.rows import Row
from steptime.web.context import PageContext, read_query
from steptime.web.parameters import QUERY_PARAMETERS

PATH = "/history"
TITLE = "History"
ORDER = 4

MOST_ROWS = 2000


def add(server: FastAPI, context: PageContext) -> None:
    @server.get(PATH, response_class=HTMLResponse, openapi_extra=QUERY_PARAMETERS)
    def history_page(request: Request) -> Response:
        """A query over time, with the changes of its level."""
        query = read_query(request)
        listing = context.workspace.index.list_runs(query, MOST_ROWS, metrics=[query.y])
        # Imported results often have no date.
        rows = [row for row in listing if row["started"]]
        changes = find_changes(query.y, rows)
        return context.page(
            "history.html",
            current=PATH,
            query=query,
            url=query.to_url(),
            rows=rows,
            changes=changes,
            spec=make_history_spec(query, rows, set(changes)),
            differing=differing_dimensions(rows),
            most=MOST_ROWS,
        )


def differing_dimensions(rows: list[Row]) -> list[str]:
    """What the runs differ in besides versions: if anything, they are several histories."""
    return [name for name in CONFIGURATION if len({row.get(name) for row in rows}) > 1]
