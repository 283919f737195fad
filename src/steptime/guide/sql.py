"""Questions as SQL text with bound values: names come from the catalogue only, and every one is quoted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.query import Query, Where, bounds

Statement = tuple[str, list[Any]]
MERGEABLE = ("n", "least", "most", "total", "squares", "best_id", "best_low", "best_high")


def chart(query: Query, where: Where, *, cells: bool = False) -> Statement:
    """One row for each point: its dimensions, then n, the summary, and the run that is best."""
    groups = [quoted(name) for name in query.groups]
    test, values = tested(query, where, cells=cells)
    columns = ", ".join([*groups, *(_merged(query.y) if cells else _summary(query.y))])
    order = f" GROUP BY {', '.join(groups)} ORDER BY {', '.join(groups)}" if groups else ""
    return f"SELECT {columns} FROM {'cells' if cells else 'runs'} WHERE {test}{order}", values


def scatter(query: Query, where: Where, limit: int) -> Statement:
    """Both axes are metrics: every run is a point."""
    ends = [quoted(f"{name}{end}") for name in (query.x, query.y) for end in ("", "_low", "_high")]
    test, values = tested(query, where)
    columns = ", ".join(['"id"', *(quoted(name) for name in query.groups), *ends])
    return (
        f'SELECT {columns} FROM runs WHERE {test} AND {quoted(query.x)} IS NOT NULL ORDER BY "id" LIMIT {limit}',
        values,
    )


def facets(query: Query, where: Where, names: Iterable[str], *, cells: bool = False) -> Statement:
    """How many runs each value of each dimension would leave, under all filters but the dimension's own."""
    parts, values = [], []
    count = f"CAST(sum({quoted(query.y + '_n')}) AS BIGINT)" if cells else "count(*)"
    for name in names:
        others = tuple((key, wanted) for key, wanted in where if key.removeprefix("!") != name)
        test, bound = tested(query, others, cells=cells)
        value = f"CAST({quoted(name)} AS VARCHAR)"
        source = "cells" if cells else "runs"
        parts.append(f"SELECT '{name}' AS name, {value} AS value, {count} AS n FROM {source} WHERE {test} GROUP BY 2")
        values += bound
    return " UNION ALL ".join(parts), values


def mixed(query: Query, where: Where, names: Iterable[str], *, cells: bool = False) -> Statement:
    """For each dimension, the most values that any one point has of it: more than one, and the point mixes them."""
    kept = [name for name in names if name not in query.groups]
    groups = ", ".join(quoted(name) for name in query.groups)
    test, values = tested(query, where, cells=cells)
    counts = ", ".join(f"count(DISTINCT {quoted(name)}) AS {quoted(name)}" for name in kept)
    inner = f"SELECT {counts} FROM {'cells' if cells else 'runs'} WHERE {test}{f' GROUP BY {groups}' if groups else ''}"
    most = ", ".join(f"max({quoted(name)}) AS {quoted(name)}" for name in kept)
    return f"SELECT {most} FROM ({inner})", values


def listing(query: Query, where: Where, limit: int, after: tuple[str, str] | None = None) -> Statement:
    """Newest first, a page at a time: what comes after the run that started then and has this id."""
    test, values = tested(query, where, valued=False)
    page = ' AND ("started", "id") < (?, ?)' if after else ""
    order = f' ORDER BY "started" DESC, "id" DESC LIMIT {int(limit)}'
    return f"SELECT * FROM runs WHERE {test}{page}{order}", [*values, *(after or ())]


def tested(query: Query, where: Where, *, cells: bool = False, valued: bool = True) -> Statement:
    """The condition on a row, with its values."""
    texts, values = [], []
    if valued:
        texts.append(f"{quoted(query.y + '_n')} > 0" if cells else f"{quoted(query.y)} IS NOT NULL")
    for key, wanted in where:
        name = key.removeprefix("!")
        alternatives, bound = zip(*(_one(name, value) for value in wanted), strict=True)
        negation = "NOT " if key.startswith("!") else ""
        texts.append(f"{negation}coalesce({' OR '.join(alternatives)}, FALSE)")
        values += [value for part in bound for value in part]
    for sign, moment in ((">=", query.since), ("<", query.until)):
        if moment and not cells:
            texts.append(f'"started" {sign} ?')
            values.append(moment)
    return " AND ".join(texts) or "TRUE", values


def _one(name: str, value: str) -> Statement:
    if not DIMENSIONS[name].number:
        return f"{quoted(name)} = ?", [value]
    low, high = bounds(value)
    parts = [(">=", low), ("<=", high)]
    tests = [f"{quoted(name)} {sign} ?" for sign, limit in parts if limit is not None]
    return f"({' AND '.join(tests) or f'{quoted(name)} IS NOT NULL'})", [
        limit for _, limit in parts if limit is not None
    ]


def _summary(name: str) -> list[str]:
    column, low, high = quoted(name), quoted(f"{name}_low"), quoted(f"{name}_high")
    pick = _pick(name)
    return [
        f"count({column}) AS n", f"min({column}) AS least", f"max({column}) AS most", f"avg({column}) AS mean",
        f"stddev_samp({column}) AS deviation", f"quantile_cont({column}, [0.25, 0.5, 0.75]) AS quartiles",
        f'{pick}("id", {column}) AS best_id', f"{pick}({low}, {column}) AS best_low",
        f"{pick}({high}, {column}) AS best_high",
    ]  # fmt: skip


def _merged(name: str) -> list[str]:
    n, total, squares = (f"sum({quoted(f'{name}_{part}')})" for part in ("n", "total", "squares"))
    best = f"{name}_most" if METRICS[name].better == "more" else f"{name}_least"
    pick = _pick(name)
    return [
        f"CAST({n} AS BIGINT) AS n", f"min({quoted(name + '_least')}) AS least",
        f"max({quoted(name + '_most')}) AS most", f"{total} / {n} AS mean",
        f"CASE WHEN {n} > 1 THEN sqrt(greatest({squares} - {total} * {total} / {n}, 0) / ({n} - 1)) END AS deviation",
        "NULL AS quartiles",
        *(f"{pick}({quoted(f'{name}_{part}')}, {quoted(best)}) AS {part}" for part in MERGEABLE[-3:]),
    ]  # fmt: skip


def make_cells(dimensions: Iterable[str]) -> str:
    """One row for each configuration, with what merges exactly."""
    columns = []
    for name, metric in METRICS.items():
        own, low, high = quoted(name), quoted(f"{name}_low"), quoted(f"{name}_high")
        pick = _pick(metric.name)
        parts = (
            f"count({own})", f"min({own})", f"max({own})", f"sum({own})", f"sum({own} * {own})",
            f'{pick}("id", {own})', f"{pick}({low}, {own})", f"{pick}({high}, {own})",
        )  # fmt: skip
        columns += [f"{part} AS {quoted(f'{name}_{word}')}" for part, word in zip(parts, MERGEABLE, strict=True)]
    groups = ", ".join(quoted(name) for name in dimensions)
    return f"CREATE OR REPLACE TABLE cells AS SELECT {groups}, {', '.join(columns)} FROM runs GROUP BY {groups}"


def _pick(name: str) -> str:
    return "arg_max" if METRICS[name].better == "more" else "arg_min"


def quoted(name: str) -> str:
    """`precision` and `user` are words of SQL; names that hold a quote are not in the catalogue."""
    return f'"{name}"'
