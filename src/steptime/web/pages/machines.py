"""Machines with their measured peaks."""

from __future__ import annotations

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from steptime.web.context import PageContext

PATH = "/machines"
TITLE = "Machines"
ORDER = 6


def add(server: FastAPI, context: PageContext) -> None:
    @server.get(PATH, response_class=HTMLResponse)
    def machines_page() -> Response:
        """Machines with their measured peaks."""
        machines = context.workspace.machines()
        return context.page("machines.html", current=PATH, machines=machines)
