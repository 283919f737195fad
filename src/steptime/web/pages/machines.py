"""Machines with their measured peaks, and certificates: what the numbers stand on."""

from __future__ import annotations

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from steptime.web.context import Desk


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/machines", response_class=HTMLResponse)
    def machines() -> Response:
        """Machines with their measured peaks."""
        return desk.page("machines.html", here="/machines", machines=desk.source.machines())

    @server.get("/certificates", response_class=HTMLResponse)
    def certificates() -> Response:
        """Which lowerings are proved to compute their network."""
        found = sorted(
            desk.source.certificates(), key=lambda one: (one.case.workload, one.case.framework)
        )
        return desk.page("certificates.html", here="/certificates", certificates=found)
