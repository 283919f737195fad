"""Scaling tables of a query: what its runs gain from more processing units or threads."""

from __future__ import annotations

from steptime.analysis.scaling.speedup import ScalingTable, speedup_tables
from steptime.index.catalogue import ALONE, DIMENSIONS
from steptime.index.index import Index
from steptime.index.query import Query

GROWS = ("devices", "threads")
# Servers may differ within a series: larger ones often have other names.
MAY_DIFFER = ("devices", "nodes", "server", "interconnect", "software", "framework_version")
SAME = tuple(name for name in DIMENSIONS if name not in (*ALONE, *MAY_DIFFER))
MOST_ROWS = 5000
MOST_TABLES = 12


def scaling_tables(index: Index, query: Query) -> list[ScalingTable]:
    """Empty if the query's axis is neither devices nor threads."""
    if query.x not in GROWS:
        return []
    rows = index.list_runs(query, MOST_ROWS, metrics=("throughput", "throughput_per_device"))
    tables = speedup_tables(rows, SAME, kind=query.scaling, over=query.x)
    return tables[:MOST_TABLES]
