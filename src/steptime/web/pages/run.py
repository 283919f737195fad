"""One run: its numbers with their flags, its steps over time, its origin, how to repeat it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from steptime.analysis.result import result
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.index.catalogue import METRICS
from steptime.index.workspace import Workspace
from steptime.report.html import format_number, format_quantity
from steptime.web.context import PageContext
from steptime.web.run_view import run_values

PATH = "/run/{run}"
TITLE = "Run"
ORDER = None

# The entry of the navigation that these pages belong to.
RUNS = "/runs"


def add(server: FastAPI, context: PageContext) -> None:
    workspace = context.workspace

    @server.get("/run")
    def find_run(id: str = "") -> Response:
        """Redirects to the run whose id is, begins or ends with this."""
        return _redirect_to_run(workspace, id.strip())

    @server.get(PATH, response_class=HTMLResponse)
    def run_page(run: str) -> Response:
        """One run; the end of its id is enough."""
        stored = workspace.find_run(run)
        if stored is None:
            return _redirect_to_run(workspace, run)
        if isinstance(stored, ForeignRun):
            return _foreign_page(context, stored)
        return context.page("run.html", current=RUNS, **run_values(workspace, stored))

    @server.get("/api/v1/runs/{run}")
    def run_json(run: str) -> dict[str, Any]:
        """One run, as JSON."""
        stored = workspace.find_run(run)
        if stored is None:
            raise HTTPException(404, f"No run {run!r} in this store.")
        return stored.to_dict() if isinstance(stored, ForeignRun) else _record_facts(stored)


def _redirect_to_run(workspace: Workspace, id_part: str) -> Response:
    """To the only run whose id is, begins or ends with `id_part`."""
    rows = workspace.index.find_rows(id_part) if id_part else []
    if not rows:
        raise HTTPException(404, f"No run {id_part!r} in this store.")
    if len(rows) > 1:
        raise HTTPException(404, f"Several runs have ids like {id_part!r} in this store.")
    run_id = rows[0]["id"]
    # A row without a record would redirect to itself.
    if run_id == id_part:
        raise HTTPException(404, f"The run {id_part!r} cannot be read any more.")
    return RedirectResponse(f"/run/{quote(run_id, safe='')}", 303)


def _foreign_page(context: PageContext, run: ForeignRun) -> HTMLResponse:
    numbers = {}
    for name, value in run.metrics.items():
        metric = METRICS.get(name)
        if metric:
            unit = metric.unit_of(str(run.dimensions.get("unit") or ""))
            numbers[metric.label] = format_quantity(value, unit)
        else:
            numbers[name] = format_number(value)
    return context.page("foreign.html", current=RUNS, run=run, numbers=numbers)


def _record_facts(record: Record) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "id": record.attempts[0].id,
        "case": record.case.to_dict(),
        "status": record.status,
    }
    if record.measurements:
        facts["result"] = result(record).to_dict()
    else:
        facts["failure"] = vars(record.failures[-1])
    return facts
