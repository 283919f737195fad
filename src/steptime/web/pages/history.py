"""The same question over time, with the runs at which a level changed."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.charts.chart import over_time
from steptime.index.history import CONFIGURATION, changes
from steptime.index.rows import Row
from steptime.web.context import Desk, asked
from steptime.web.parameters import QUESTION

MOST = 2000


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/history", response_class=HTMLResponse, openapi_extra=QUESTION)
    def history(request: Request) -> Response:
        """The question over time, with changes of level."""
        query = asked(request)
        rows = [row for row in desk.index.listing(query, MOST, metrics=[query.y]) if row["started"]]
        found = changes(query.y, rows)
        return desk.page(
            "history.html", here="/history", query=query, url=query.to_url(), rows=rows, changes=found,
            spec=over_time(query, rows, set(found)), differing=differing(rows), most=MOST,
        )  # fmt: skip


def differing(rows: list[Row]) -> list[str]:
    """What the runs of this view differ in besides versions: it is not one history then."""
    return [name for name in CONFIGURATION if len({row.get(name) for row in rows}) > 1]
