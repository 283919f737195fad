"""All runs that a query finds, newest first, and each one by itself."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse

from steptime.core.foreign import ForeignRun
from steptime.web.context import Desk, asked
from steptime.web.pages.explore import chips
from steptime.web.pages.run import foreign_page, own_page
from steptime.web.parameters import QUESTION

PAGE = 50
COLUMNS_SHOWN = (
    "model",
    "phase",
    "framework",
    "mode",
    "precision",
    "device",
    "replica_batch",
    "source",
    "grade",
    "status",
)


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/runs", response_class=HTMLResponse, openapi_extra=QUESTION)
    def runs(request: Request) -> Response:
        """All runs, newest first, failures and impossible ones where asked for."""
        query, after = asked(request, "after"), request.query_params.get("after", "")
        rows = desk.index.listing(query, PAGE, _mark(after))
        more = f"{rows[-1]['started']}|{rows[-1]['id']}" if len(rows) == PAGE else ""
        return desk.page(
            "runs.html", here="/runs", query=query, url=query.to_url(), rows=rows, more=more, columns=COLUMNS_SHOWN,
            matching=desk.index.matching(query, valued=False), chips=chips(query),
        )  # fmt: skip

    @server.get("/runs.csv", openapi_extra=QUESTION)
    def runs_csv(request: Request) -> Response:
        """The same, all of them."""
        return StreamingResponse(
            map(_as_csv, desk.index.streamed(asked(request))), media_type="text/csv"
        )

    @server.get("/api/v1/runs", openapi_extra=QUESTION)
    def runs_json(request: Request, limit: int = PAGE, after: str = "") -> dict[str, Any]:
        """The same, a page at a time."""
        query = asked(request, "limit", "after")
        return {
            "query": query.to_url(),
            "runs": desk.index.listing(query, max(1, min(limit, 1000)), _mark(after)),
        }

    @server.get("/run")
    def run_found(id: str = "") -> Response:
        """Leads to the run whose id is, begins or ends with this."""
        return _to_whole(desk, id.strip())

    @server.get("/run/{run}", response_class=HTMLResponse)
    def run_page(run: str) -> Response:
        """One run; an end of its id is enough."""
        found = desk.found(run)
        if found is None:
            return _to_whole(
                desk, run, but=run
            )  # a row without a record leads nowhere, not round in circles
        return foreign_page(desk, found) if isinstance(found, ForeignRun) else own_page(desk, found)

    @server.get("/api/v1/runs/{run}")
    def run_json(run: str) -> dict[str, Any]:
        """One run."""
        found = desk.found(run)
        if found is None:
            raise HTTPException(404, f"No run {run!r} in this store.")
        return found.to_dict() if isinstance(found, ForeignRun) else desk.own(found)


def _as_csv(rows: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _to_whole(desk: Desk, word: str, *, but: str = "") -> Response:
    """To the page of the one run whose id is, begins or ends so."""
    rows = desk.index.named(word) if word else []
    if len(rows) != 1 or rows[0]["id"] == but:
        what = ("No run", "Nothing can be read any more of the run", "Several runs have ids like")[
            len(rows)
        ]
        raise HTTPException(404, f"{what} {word!r} in this store.")
    return RedirectResponse(f"/run/{quote(rows[0]['id'], safe='')}", 303)


def _mark(text: str) -> tuple[str, str] | None:
    started, _, run = text.partition("|")
    return (started, run) if run else None
