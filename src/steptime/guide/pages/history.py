"""The same question over time."""

from __future__ import annotations

from dataclasses import replace

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.guide.chart import over_time
from steptime.guide.desk import Desk, asked

MOST = 2000


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/history", response_class=HTMLResponse)
    def history(request: Request) -> Response:
        query = asked(request)
        rows = [row for row in desk.index.listing(query, MOST) if row.get(query.y) is not None and row["started"]]
        chart = over_time(query, rows)
        explore = replace(query).to_url()
        return desk.page("history.html", here="/history", query=query, url=explore, rows=rows, spec=chart)
