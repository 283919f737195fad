"""The report of this view, as `steptime report` writes it."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.report.html import STYLE_HASH, render_report
from steptime.report.report import make_report
from steptime.web import policy
from steptime.web.context import PageContext, read_query
from steptime.web.parameters import QUERY_PARAMETERS

PATH = "/report.html"
TITLE = "Report"
ORDER = None


def add(server: FastAPI, context: PageContext) -> None:
    @server.get(PATH, response_class=HTMLResponse, openapi_extra=QUERY_PARAMETERS)
    def report_page(request: Request) -> Response:
        """The report of this view."""
        workspace = context.workspace
        report = make_report(workspace, read_query(request))
        headers = {policy.HEADER: policy.page_with_style(STYLE_HASH)}
        return HTMLResponse(render_report(report, workspace.store.path), headers=headers)
