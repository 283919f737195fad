"""How far campaigns are, while they run."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from steptime.web.context import PageContext

PATH = "/campaigns"
TITLE = "Campaigns"
ORDER = 7

STATES = ("waiting", "running", "done", "failed")
# How often the page looks again.
LIVE_SECONDS = 5
IDLE_SECONDS = 60


def add(server: FastAPI, context: PageContext) -> None:
    @server.get(PATH, response_class=HTMLResponse)
    def campaigns_page() -> Response:
        """How far campaigns are."""
        campaigns = context.campaigns()
        # A campaign that does not answer may still run.
        is_live = any(not campaign.get("is_over", False) for campaign in campaigns)
        return context.page(
            "campaigns.html",
            current=PATH,
            campaigns=campaigns,
            states=STATES,
            seconds=LIVE_SECONDS if is_live else IDLE_SECONDS,
        )

    @server.get("/api/v1/campaigns")
    def campaigns_json() -> dict[str, Any]:
        """How far campaigns are, as JSON."""
        return {"campaigns": context.campaigns()}
