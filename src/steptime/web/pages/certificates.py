"""Which lowerings are proved to compute their network."""

from __future__ import annotations

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from steptime.web.context import PageContext

PATH = "/certificates"
TITLE = "Certificates"
ORDER = 5


def add(server: FastAPI, context: PageContext) -> None:
    @server.get(PATH, response_class=HTMLResponse)
    def certificates_page() -> Response:
        """Which lowerings are proved to compute their network."""
        certificates = context.workspace.certificates()
        certificates.sort(key=lambda item: (item.case.workload, item.case.framework))
        return context.page("certificates.html", current=PATH, certificates=certificates)
