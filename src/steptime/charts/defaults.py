"""Which charts are worth drawing when nobody asks for one: each holds everything still but what it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from steptime.index.catalogue import METRICS, format_value
from steptime.index.query import Query
from steptime.index.rows import Row

HOW = ("framework", "mode")
STILL = (
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
    """Those of the usual views in which two points or more can be compared."""
    own = [row for row in rows if row["source"] == "steptime"] or list(rows)
    metric = _metric(own)
    found = [
        view for query, free in VIEWS if (view := focus_query(replace(query, y=metric), own, free))
    ]
    lossy = {
        row["precision"]
        for row in own
        if row.get("task_loss") is not None and row.get("throughput")
    }
    return [*found, *([ACCURACY_LOSS] if len(lossy) > 1 else [])]


def _metric(rows: Sequence[Row]) -> str:
    counts = {name: sum(row.get(name) is not None for row in rows) for name in METRICS}
    return (
        "throughput"
        if counts["throughput"] * 2 >= max(counts.values())
        else max(counts, key=lambda n: counts[n])
    )


def focus_query(query: Query, rows: Sequence[Row], free: Sequence[str] = ()) -> Query | None:
    """The question with all else fixed to where it shows most: many values of its axis, then many points, then runs."""
    names = [name for name in STILL if name not in (*query.groups, *free)]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.get(query.y) is not None and row.get(query.x) is not None:
            groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
    key = max(groups, key=lambda key: _shows(query, groups[key]), default=None)
    if key is None or _shows(query, groups[key])[0] < 2:
        return None
    fixed = {name: value for name, value in zip(names, key, strict=True) if value not in (None, "")}
    differs = [
        name for name in fixed if len({row.get(name) for row in rows}) > 1 or name == "source"
    ]
    return replace(query, where=tuple((name, (format_value(fixed[name]),)) for name in differs))


def _shows(query: Query, rows: Sequence[Row]) -> tuple[int, int, int]:
    points = Counter(tuple(row.get(name) for name in query.groups) for row in rows)
    return len({row[query.x] for row in rows}), len(points), len(rows)
