"""Scaling tables of a question: what its runs gain from more processing units or threads."""

from __future__ import annotations

from steptime.analysis.scaling.speedup import Scaling, scalings
from steptime.index.catalogue import ALONE, DIMENSIONS
from steptime.index.index import Index
from steptime.index.query import Query

GROWS = ("devices", "threads")
MAY_DIFFER = ("devices", "nodes", "server", "interconnect", "software", "framework_version")
SAME = tuple(name for name in DIMENSIONS if name not in (*ALONE, *MAY_DIFFER))
"""In what the runs of one series agree. Servers are told where they differ: larger ones often have other names."""
MOST_ROWS, MOST_TABLES = 5000, 12


def grown(index: Index, query: Query) -> list[Scaling]:
    """Of what the question's axis counts; a question without such an axis has none."""
    if query.x not in GROWS:
        return []
    rows = index.listing(query, MOST_ROWS, metrics=("throughput", "throughput_per_device"))
    return scalings(rows, SAME, kind=query.scaling, over=query.x)[:MOST_TABLES]
