"""The report of exactly this view, as `steptime report` writes it."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.report.report import as_html, made
from steptime.web.context import Desk, asked
from steptime.web.parameters import QUESTION

ADDRESS = "/report.html"


def add(server: FastAPI, desk: Desk) -> None:
    @server.get(ADDRESS, response_class=HTMLResponse, openapi_extra=QUESTION)
    def report_page(request: Request) -> Response:
        """The report of exactly this view."""
        return HTMLResponse(as_html(desk, made(desk, asked(request))))
