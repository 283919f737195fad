"""Two questions side by side: only configurations that both have, each ratio with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from steptime.analysis.intervals import student_quantile
from steptime.guide.catalogue import ALONE, DIMENSIONS, METRICS
from steptime.guide.desk import Desk
from steptime.guide.query import Query, from_url
from steptime.guide.rows import Row

MOST = 5000
VERSIONS = ("framework_version", "software")


@dataclass(frozen=True)
class Pair:
    what: dict[str, Any]
    a: Row
    b: Row
    ratio: float
    low: float | None
    high: float | None
    verdict: str


@dataclass(frozen=True)
class Table:
    differs: tuple[str, ...]  # what A and B differ in as a whole: this is what is compared
    pairs: list[Pair]
    only_a: int
    only_b: int
    mean: tuple[float, float | None, float | None] | None  # geometric


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/compare", response_class=HTMLResponse)
    def compare(request: Request) -> Response:
        words = request.query_params
        a, b, show = words.get("a", ""), words.get("b", ""), words.get("show", "all")
        table = compared(desk, from_url(a), from_url(b)) if a and b else None
        pairs = [p for p in table.pairs if show == "all" or p.verdict == show] if table else []
        return desk.page("compare.html", here="/compare", a=a, b=b, show=show, table=table, pairs=pairs)


def compared(desk: Desk, a: Query, b: Query) -> Table:
    """The best run of each configuration speaks for it."""
    sides = [_best(a.y, desk.index.listing(query, MOST)) for query in (a, b)]
    differs = tuple(name for name in DIMENSIONS if name not in ALONE and _differs(name, *sides))
    keyed = [{_key(row, differs): row for row in side} for side in sides]
    both = [key for key in keyed[0] if key in keyed[1]]
    pairs = [_pair(a.y, keyed[0][key], keyed[1][key], differs) for key in both]
    only = [len(side) - len(both) for side in keyed]
    return Table(differs, sorted(pairs, key=lambda p: p.ratio), only[0], only[1], _geometric(pairs))


def _best(metric: str, rows: list[Row]) -> list[Row]:
    better = max if METRICS[metric].better == "more" else min
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.get(metric):
            groups.setdefault(_key(row, ()), []).append(row)
    return [better(group, key=lambda row: row[metric]) for group in groups.values()]


def _key(row: Row, but: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in DIMENSIONS if name not in (*ALONE, *but))


def _differs(name: str, a: list[Row], b: list[Row]) -> bool:
    """No value in common: the two sides were chosen by it."""
    one, two = ({row.get(name) for row in side} for side in (a, b))
    return bool(one and two) and not one & two


def _pair(metric: str, a: Row, b: Row, differs: tuple[str, ...]) -> Pair:
    ratio = b[metric] / a[metric]
    low, high = _ratio_interval(metric, a, b)
    what = {name: value for name, value in b.items() if name in DIMENSIONS and name not in (*ALONE, *differs) and value}
    return Pair(what, a, b, ratio, low, high, _verdict(metric, low, high))


def _ratio_interval(metric: str, a: Row, b: Row) -> tuple[float | None, float | None]:
    """Of two independent results on a log scale: relative half-widths add as squares."""
    widths = []
    for row in (a, b):
        low, high = row.get(f"{metric}_low"), row.get(f"{metric}_high")
        if not low or not high:
            return None, None
        widths.append(log(high / low) / 2)
    reach, centre = sqrt(sum(width**2 for width in widths)), log(b[metric] / a[metric])
    return exp(centre - reach), exp(centre + reach)


def _verdict(metric: str, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "unknown"
    if low <= 1 <= high:
        return "same or inconclusive"
    return "better" if (low > 1) == (METRICS[metric].better == "more") else "worse"


def _geometric(pairs: list[Pair]) -> tuple[float, float | None, float | None] | None:
    logs = [log(pair.ratio) for pair in pairs]
    if not logs:
        return None
    mean, count = sum(logs) / len(logs), len(logs)
    if count < 2:
        return exp(mean), None, None
    deviation = sqrt(sum((value - mean) ** 2 for value in logs) / (count - 1))
    reach = student_quantile(count - 1) * deviation / sqrt(count)
    return exp(mean), exp(mean - reach), exp(mean + reach)
