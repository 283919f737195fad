"""Two runs, or two questions, side by side, with what is known of whether they compute the same."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from steptime.analysis.certificates import remark, uncertified
from steptime.core.errors import SteptimeError
from steptime.index.catalogue import METRICS
from steptime.index.matching import Table, matched
from steptime.index.query import Query, from_url
from steptime.index.rows import Row
from steptime.web.context import Desk

MOST = 5000
SHOWS = ("all", "better", "worse", "same or inconclusive", "unknown")
ELSEWHERE = (
    "not certified: measured by another tool, so nobody can say whether both compute the same"
)


@dataclass(frozen=True)
class Side:
    metric: str  # empty: whatever the other side asks for
    rows: list[Row]
    cut: bool  # there are more than were looked at


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/compare", response_class=HTMLResponse)
    def compare(request: Request, a: str = "", b: str = "", show: str = "all") -> Response:
        """Two runs, or two questions, side by side: a=…&b=…"""
        if picked := request.query_params.getlist("run"):
            return _ticked(picked)
        if show not in SHOWS:
            raise SteptimeError(f"show is {', '.join(SHOWS)}; found {show!r}.")
        sides = [_side(desk, text) for text in (a, b)] if a and b else []
        metric = _metric(*sides) if sides else "throughput"
        table = matched(metric, sides[0].rows, sides[1].rows) if sides else None
        pairs = [pair for pair in table.pairs if show in ("all", pair.verdict)] if table else []
        proofs = certified(desk, table)
        return desk.page(
            "compare.html", here="/compare", a=a, b=b, show=show, shows=SHOWS, table=table, pairs=pairs,
            metric=METRICS[metric], cut=any(side.cut for side in sides), certified=proofs,
            proved=sum(text.startswith("certified") for text in proofs.values()),
        )  # fmt: skip


def _ticked(runs: list[str]) -> Response:
    """What check boxes send, as the address that the page has."""
    if len(runs) != 2:
        raise SteptimeError(
            f"Two runs are compared; {len(runs)} {'was' if len(runs) == 1 else 'were'} ticked."
        )
    return RedirectResponse(f"/compare?{urlencode({'a': runs[0], 'b': runs[1]})}", 303)


def _side(desk: Desk, text: str) -> Side:
    """A question has an equals sign; a run's id, or the end of one, has none."""
    if "=" not in text:
        return Side("", [desk.row(text)], False)
    query: Query = from_url(text)
    rows = desk.index.listing(query, MOST + 1, metrics=[query.y])
    return Side(query.y, rows[:MOST], len(rows) > MOST)


def _metric(a: Side, b: Side) -> str:
    found = {side.metric for side in (a, b) if side.metric}
    if len(found) > 1:
        raise SteptimeError(
            f"A and B ask for different metrics, {a.metric} and {b.metric}: they have no ratio."
        )
    return next(iter(found), "") or _common(a.rows[0], b.rows[0])


def _common(a: Row, b: Row) -> str:
    """The first metric that two runs both have; speed where neither tells."""
    names = ["throughput", *METRICS]
    return next(
        (name for name in names if a.get(name) is not None and b.get(name) is not None), names[0]
    )


def certified(desk: Desk, table: Table | None) -> dict[str, str]:
    """Where frameworks differ: for each pair, by A's id, whether certificates cover both."""
    if table is None or "framework" not in table.differs:
        return {}
    known, found = desk.source.certificates(), {}
    lasts = desk.source.lasts([row["id"] for pair in table.pairs for row in (pair.a, pair.b)])
    for pair in table.pairs:
        a, b = (lasts.get(row["id"]) for row in (pair.a, pair.b))
        if a and b:
            why = uncertified(a, b, known)
            found[pair.a["id"]] = f"not certified: {why}" if why else remark(a, b, known)
        else:
            found[pair.a["id"]] = ELSEWHERE
    return found
