"""Two runs, or two queries, side by side, and whether both are proved to compute the same."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from steptime.analysis.compare import LIKELY
from steptime.core.errors import SteptimeError
from steptime.index.catalogue import METRICS
from steptime.index.certified import CERTIFIED, certification
from steptime.index.query import from_url
from steptime.index.rows import Row
from steptime.index.stored_pairs import compare_rows
from steptime.index.workspace import Workspace
from steptime.web.context import PageContext

PATH = "/compare"
TITLE = "Compare"
ORDER = 3

MOST_ROWS = 5000
VERDICTS = ("all", "better", "worse", "same or inconclusive", "unknown", "refused")


@dataclass(frozen=True)
class Side:
    metric: str  # empty: that of the other side
    rows: list[Row]
    is_cut: bool  # there are more rows than these


def add(server: FastAPI, context: PageContext) -> None:
    @server.get(PATH, response_class=HTMLResponse)
    def compare_page(request: Request, a: str = "", b: str = "", show: str = "all") -> Response:
        """Two runs, or two queries, side by side: a=…&b=…"""
        if ticked := request.query_params.getlist("run"):
            return _redirect_to_pair(ticked)
        if show not in VERDICTS:
            raise SteptimeError(f"show is one of {', '.join(VERDICTS)}; found {show!r}.")
        form = {"a": a, "b": b, "show": show}
        if not (a and b):
            return context.page("compare.html", current=PATH, shows=VERDICTS, table=None, **form)
        return _compare(context, form)


def _compare(context: PageContext, form: dict[str, str]) -> HTMLResponse:
    a = _read_side(context.workspace, form["a"])
    b = _read_side(context.workspace, form["b"])
    metric = _choose_metric(a, b)
    table = compare_rows(context.workspace, metric, a.rows, b.rows)
    proofs = certification(context.workspace, table)
    show = form["show"]
    return context.page(
        "compare.html",
        current=PATH,
        shows=VERDICTS,
        table=table,
        pairs=[pair for pair in table.pairs if show in ("all", pair.verdict.removeprefix(LIKELY))],
        metric=METRICS[metric],
        is_cut=a.is_cut or b.is_cut,
        certified=proofs,
        proved=sum(text.startswith(CERTIFIED) for text in proofs.values()),
        **form,
    )


def _redirect_to_pair(run_ids: list[str]) -> Response:
    """From what check boxes send to the URL that the page has."""
    if len(run_ids) != 2:
        raise SteptimeError(f"Tick exactly two runs to compare them; found {len(run_ids)}.")
    query = urlencode({"a": run_ids[0], "b": run_ids[1]})
    return RedirectResponse(f"{PATH}?{query}", 303)


def _read_side(workspace: Workspace, text: str) -> Side:
    """A query has an equals sign; a run's id, or the end of one, has none."""
    if "=" not in text:
        return Side("", [workspace.find_row(text)], False)
    query = from_url(text)
    # One more than are compared tells whether there are more.
    rows = workspace.index.list_runs(query, MOST_ROWS + 1, metrics=[query.y])
    return Side(query.y, rows[:MOST_ROWS], len(rows) > MOST_ROWS)


def _choose_metric(a: Side, b: Side) -> str:
    if a.metric and b.metric and a.metric != b.metric:
        raise SteptimeError(
            f"A and B ask for different metrics, {a.metric} and {b.metric}: they have no ratio."
        )
    return a.metric or b.metric or _common_metric(a.rows[0], b.rows[0])


def _common_metric(a: Row, b: Row) -> str:
    """The first metric that both runs have; throughput if there is none."""
    for name in ("throughput", *METRICS):
        if a.get(name) is not None and b.get(name) is not None:
            return name
    return "throughput"
