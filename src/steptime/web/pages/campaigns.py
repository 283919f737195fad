"""How far campaigns are, while they run. Who knows it is handed in: the guide itself asks no cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from steptime.web.context import Desk

STATES = ("waiting", "running", "done", "failed")
LIVE_SECONDS, IDLE_SECONDS = 5, 60  # between two looks of the page
Campaigns = Callable[[], list[dict[str, Any]]]


def add(server: FastAPI, desk: Desk, campaigns: Campaigns) -> None:
    @server.get("/campaigns", response_class=HTMLResponse)
    def campaigns_page() -> Response:
        """How far campaigns are."""
        found = campaigns()
        live = any(not one.get("is_over", False) for one in found)
        seconds = LIVE_SECONDS if live else IDLE_SECONDS
        return desk.page(
            "campaigns.html", here="/campaigns", campaigns=found, states=STATES, seconds=seconds
        )

    @server.get("/api/v1/campaigns")
    def campaigns_json() -> dict[str, Any]:
        """How far campaigns are."""
        return {"campaigns": campaigns()}
