"""The report of exactly this view, as `steptime report` writes it."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.guide.desk import Desk, asked
from steptime.guide.parameters import QUESTION
from steptime.guide.report import as_html, made

ADDRESS = "/report.html"


def add(server: FastAPI, desk: Desk) -> None:
    @server.get(ADDRESS, response_class=HTMLResponse, openapi_extra=QUESTION)
    def report_page(request: Request) -> Response:
        """The report of exactly this view."""
        return HTMLResponse(as_html(desk, made(desk, asked(request))))
