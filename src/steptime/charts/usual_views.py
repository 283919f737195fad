"""The charts of a report without a query: each fixes everything but what it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from steptime.index.catalogue import METRICS, format_value
from steptime.index.query import Query
from steptime.index.rows import Row

HOW = ("framework", "mode")
# Dimensions that a chart fixes, unless it shows them or leaves them free.
FIXED = (
    "source",
    "suite",
    "model",
    "phase",
    "precision",
    "device",
    "devices",
    "replica_batch",
    "data",
    "unit",
)
# The usual views, each with the dimensions that it leaves free.
VIEWS = (
    (Query(x="model", by=HOW, log="y"), ("replica_batch", "data", "unit", "suite")),
    (Query(x="replica_batch", by=HOW, mark="line", log="xy"), ("replica_batch",)),
    (Query(x="precision", by=HOW), ()),
    (Query(x="devices", by=HOW, mark="line"), ("replica_batch",)),
    (Query(x="threads", by=HOW, mark="line"), ()),
    (Query(x="device", by=HOW, log="y"), ("data",)),
    (Query(x="data", by=HOW), ()),
)
ACCURACY_LOSS = Query(x="task_loss", by=("framework", "precision"))


def usual_queries(rows: Sequence[Row]) -> list[Query]:
    """The usual views in which two points or more can be compared."""
    # Imported results are shown only if there are no others.
    measured = [row for row in rows if row["source"] == "steptime"] or list(rows)
    metric = _main_metric(measured)
    queries = []
    for view, free in VIEWS:
        query = focus_query(replace(view, y=metric), measured, free)
        if query:
            queries.append(query)
    lossy = set()
    for row in measured:
        if row.get("task_loss") is not None and row.get("throughput"):
            lossy.add(row["precision"])
    if len(lossy) > 1:
        queries.append(ACCURACY_LOSS)
    return queries


def _main_metric(rows: Sequence[Row]) -> str:
    """Throughput, unless another metric has more than twice as many values."""
    counts = {name: sum(row.get(name) is not None for row in rows) for name in METRICS}
    most_common = max(counts, key=lambda name: counts[name])
    if counts["throughput"] * 2 >= counts[most_common]:
        return "throughput"
    return most_common


def focus_query(query: Query, rows: Sequence[Row], free: Sequence[str] = ()) -> Query | None:
    """The query with all else fixed to the values for which it shows most."""
    names = [name for name in FIXED if name not in (*query.groups, *free)]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.get(query.y) is not None and row.get(query.x) is not None:
            key = tuple(row.get(name) for name in names)
            groups.setdefault(key, []).append(row)
    best = max(groups, key=lambda key: _count_shown(query, groups[key]), default=None)
    # With one value on its axis a chart compares nothing.
    if best is None or _count_shown(query, groups[best])[0] < 2:
        return None
    where = []
    for name, value in zip(names, best, strict=True):
        if value in (None, ""):
            continue
        # A filter that every row passes would say nothing, except about the source.
        if name == "source" or len({row.get(name) for row in rows}) > 1:
            where.append((name, (format_value(value),)))
    return replace(query, where=tuple(where))


def _count_shown(query: Query, rows: Sequence[Row]) -> tuple[int, int, int]:
    """How many values of the axis, points and runs the query shows of these rows."""
    x_values = {row[query.x] for row in rows}
    points = Counter(tuple(row.get(name) for name in query.groups) for row in rows)
    return len(x_values), len(points), len(rows)
