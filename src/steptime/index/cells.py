"""The SQL of cells: one row for each configuration, with what merges exactly."""

from __future__ import annotations

from collections.abc import Container

from steptime.index.catalogue import METRICS
from steptime.index.sql import CELL, pick_function, quote, quote_list


def cell_hash() -> str:
    """A number for a configuration, which finds its rows quickly.

    Two configurations may share a number; the grouping tells them apart."""
    return f"hash({quote_list(CELL)})"


def select_cells(present: Container[str], where: str = "TRUE") -> str:
    """`present`: the metrics that some run has."""
    columns = []
    for name in METRICS:
        summaries = _summarise(name) if name in present else _EMPTY
        for suffix, expression in summaries.items():
            columns.append(f"{expression} AS {quote(f'{name}_{suffix}')}")
    return f"""
        SELECT cell, {quote_list(CELL)}, count(*) AS cell_runs, {", ".join(columns)}
        FROM runs
        WHERE {where}
        GROUP BY cell, {quote_list(CELL)}
    """


def _summarise(metric: str) -> dict[str, str]:
    column = quote(metric)
    pick = pick_function(metric)
    return {
        "n": f"count({column})",
        "least": f"min({column})",
        "most": f"max({column})",
        "total": f"sum({column})",
        "squares": f"sum({column} * {column})",
        "best_id": f'{pick}("id", {column})',
        "best_low": f"{pick}({quote(f'{metric}_low')}, {column})",
        "best_high": f"{pick}({quote(f'{metric}_high')}, {column})",
    }


_NUMBER = "CAST(NULL AS DOUBLE)"
# The summary of a metric that no run has, with the same types.
_EMPTY = {
    "n": "CAST(0 AS BIGINT)",
    "least": _NUMBER,
    "most": _NUMBER,
    "total": _NUMBER,
    "squares": _NUMBER,
    "best_id": "CAST(NULL AS VARCHAR)",
    "best_low": _NUMBER,
    "best_high": _NUMBER,
}
