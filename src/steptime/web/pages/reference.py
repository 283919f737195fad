"""What can be asked, and where: the words of a question, from the catalogue, and the addresses, from OpenAPI."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from steptime.index.query import CHOICES
from steptime.web.context import Desk


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/words", response_class=HTMLResponse)
    def words_page() -> Response:
        """This page."""
        return desk.page(
            "words.html", here="", addresses=_addresses(server.openapi()["paths"]), choices=CHOICES
        )


def _addresses(paths: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "method": method.upper(),
            "path": path,
            "gives": told.get("description") or told.get("summary", ""),
            "question": any(one["name"] == "by" for one in told.get("parameters", ())),
        }
        for path, methods in paths.items()
        for method, told in methods.items()
    ]
