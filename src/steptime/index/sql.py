"""Queries as SQL text with bound values.

All names come from the catalogue, and every one is quoted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.query import Query, Where, bounds
from steptime.index.rows import ENDS

# What makes a configuration: runs that agree in these are repeats. Each configuration is a cell.
CELL = tuple(name for name in DIMENSIONS if name != "session")


class Statement(NamedTuple):
    """A text with question marks, and the values that they stand for."""

    text: str
    values: list[Any]


def quote(name: str) -> str:
    """`precision` and `user` are keywords of SQL. No name of the catalogue contains a quote."""
    return f'"{name}"'


def quote_list(names: Iterable[str]) -> str:
    return ", ".join(quote(name) for name in names)


def select_points(query: Query, where: Where, *, cells: bool = False) -> Statement:
    """One row for each point: its dimensions, then n, the summary, and the best run."""
    condition = make_condition(query, where, cells=cells)
    groups = quote_list(query.groups)
    columns = merged_columns(query.y) if cells else summary_columns(query)
    points = f"""
        SELECT {", ".join(filter(None, [groups, *columns]))}
        FROM {"cells" if cells else "runs"}
        WHERE {condition.text}
        {f"GROUP BY {groups}" if groups else ""}
    """
    text = f"SELECT * FROM ({points}) AS points" if cells else _with_best_run(query.y, points)
    order = ", ".join(f"points.{quote(name)}" for name in query.groups)
    if order:
        text += f" ORDER BY {order}"
    return Statement(text, condition.values)


def _with_best_run(metric: str, points: str) -> str:
    """Ids are long, so rows are picked by number and only the picked ones are looked up."""
    return f"""
        SELECT
            points.*,
            best."id" AS best_id,
            best.{quote(f"{metric}_low")} AS best_low,
            best.{quote(f"{metric}_high")} AS best_high
        FROM ({points}) AS points
        LEFT JOIN runs AS best ON best.rowid = points.best
    """


def summary_columns(query: Query) -> list[str]:
    """What a point summarises, computed from runs."""
    column = quote(query.y)
    quartiles = "NULL"
    # Quartiles are the only costly column.
    if query.agg == "median" or query.err == "iqr":
        quartiles = f"quantile_cont({column}, [0.25, 0.5, 0.75])"
    return [
        f"count({column}) AS n",
        f"min({column}) AS least",
        f"max({column}) AS most",
        f"avg({column}) AS mean",
        f"stddev_samp({column}) AS deviation",
        f"{quartiles} AS quartiles",
        f"{pick_function(query.y)}(rowid, {column}) AS best",
    ]


def merged_columns(metric: str) -> list[str]:
    """What a point summarises, computed from cells."""
    n = f"sum({quote(f'{metric}_n')})"
    total = f"sum({quote(f'{metric}_total')})"
    squares = f"sum({quote(f'{metric}_squares')})"
    # Rounding may make the difference negative if all values are equal.
    variance = f"greatest({squares} - {total} * {total} / {n}, 0) / ({n} - 1)"
    best = "most" if METRICS[metric].better == "more" else "least"
    best_column = quote(f"{metric}_{best}")
    pick = pick_function(metric)
    return [
        f"CAST({n} AS BIGINT) AS n",
        f"min({quote(f'{metric}_least')}) AS least",
        f"max({quote(f'{metric}_most')}) AS most",
        f"{total} / {n} AS mean",
        f"CASE WHEN {n} > 1 THEN sqrt({variance}) END AS deviation",
        "NULL AS quartiles",
        f"{pick}({quote(f'{metric}_best_id')}, {best_column}) AS best_id",
        f"{pick}({quote(f'{metric}_best_low')}, {best_column}) AS best_low",
        f"{pick}({quote(f'{metric}_best_high')}, {best_column}) AS best_high",
    ]


def pick_function(metric: str) -> str:
    return "arg_max" if METRICS[metric].better == "more" else "arg_min"


def select_scatter(query: Query, where: Where, limit: int) -> Statement:
    """Both axes are metrics, so every run is a point."""
    condition = make_condition(query, where)
    ends = [f"{name}{end}" for name in (query.x, query.y) for end in ENDS]
    text = f"""
        SELECT {quote_list(["id", *query.groups, *ends])}
        FROM runs
        WHERE {condition.text} AND {quote(query.x)} IS NOT NULL
        ORDER BY "id"
        LIMIT {int(limit)}
    """
    return Statement(text, condition.values)


def select_facets(
    query: Query, where: Where, names: Iterable[str], *, cells: bool = False
) -> Statement:
    """How many runs each value of each dimension would leave, without its own filters.

    Dimensions without filters are counted together, in one pass over the rows."""
    filtered = {key.removeprefix("!") for key, _ in where}
    free = [name for name in names if name not in filtered]
    statements = []
    if free:
        condition = make_condition(query, where, cells=cells)
        statements.append(_count_free(query, free, condition, cells=cells))
    for name in names:
        if name in filtered:
            others = tuple(pair for pair in where if pair[0].removeprefix("!") != name)
            condition = make_condition(query, others, cells=cells)
            statements.append(_count_filtered(query, name, condition, cells=cells))
    text = " UNION ALL ".join(statement.text for statement in statements)
    values = [value for statement in statements for value in statement.values]
    return Statement(text, values)


def _count_free(query: Query, names: list[str], condition: Statement, *, cells: bool) -> Statement:
    casts = ", ".join(f"CAST({quote(name)} AS VARCHAR)" for name in names)
    text = f"""
        SELECT {_grouping_name(names)} AS name, coalesce({casts}) AS value, n
        FROM (
            SELECT {_grouping_columns(names)}, {_count_runs(query, cells)} AS n
            FROM {"cells" if cells else "runs"}
            WHERE {condition.text}
            {_group_by_each(names)}
        )
    """
    return Statement(text, condition.values)


def _count_filtered(query: Query, name: str, condition: Statement, *, cells: bool) -> Statement:
    text = f"""
        SELECT '{name}', CAST({quote(name)} AS VARCHAR) AS value, {_count_runs(query, cells)}
        FROM {"cells" if cells else "runs"}
        WHERE {condition.text}
        GROUP BY value
    """
    return Statement(text, condition.values)


def _count_runs(query: Query, cells: bool) -> str:
    return f"CAST(sum({quote(f'{query.y}_n')}) AS BIGINT)" if cells else "count(*)"


def select_mixed(
    query: Query, where: Where, names: Iterable[str], *, cells: bool = False
) -> Statement:
    """For each dimension, the most values that any one point has of it.

    If that is more than one, the point mixes them."""
    condition = make_condition(query, where, cells=cells)
    others = [name for name in names if name not in query.groups]
    groups = "".join(f"{quote(name)}, " for name in query.groups)
    is_set = " OR ".join(f"{quote(name)} IS NOT NULL" for name in others)
    text = f"""
        SELECT {_grouping_name(others)} AS name, max(n) AS n
        FROM (
            SELECT {groups} grouped, count_if(is_set) AS n
            FROM (
                SELECT {groups} {_grouping_columns(others)}, ({is_set}) AS is_set
                FROM {"cells" if cells else "runs"}
                WHERE {condition.text}
                {_group_by_each(others, groups)}
            )
            GROUP BY {groups} grouped
        )
        GROUP BY grouped
    """
    return Statement(text, condition.values)


def _group_by_each(names: Sequence[str], groups: str = "") -> str:
    """One pass over the rows, grouped by each name separately."""
    sets = ", ".join(f"({groups}{quote(name)})" for name in names)
    return f"GROUP BY GROUPING SETS ({sets})"


def _grouping_columns(names: Sequence[str]) -> str:
    columns = quote_list(names)
    return f"{columns}, GROUPING_ID({columns}) AS grouped"


def _grouping_name(names: Sequence[str]) -> str:
    """The name by which a row of grouping sets was grouped: the one whose bit is not set."""
    all_bits = (1 << len(names)) - 1
    cases = []
    for number, name in enumerate(reversed(names)):
        cases.append(f"WHEN {all_bits ^ (1 << number)} THEN '{name}'")
    return f"CASE grouped {' '.join(cases)} END"


def select_runs(
    query: Query,
    where: Where,
    limit: int = -1,
    after: tuple[str, str] | None = None,
    metrics: Collection[str] = (),
) -> Statement:
    """Newest first. A limit below 0 is none.

    `after`: only runs that come after the one that started then and has this id.
    `metrics`: only these, and only of runs that have one of them."""
    condition = make_condition(query, where, valued=False)
    has_metric = " OR ".join(f"{quote(name)} IS NOT NULL" for name in metrics) or "TRUE"
    text = f"""
        SELECT {row_columns(metrics or METRICS)}
        FROM runs
        WHERE {condition.text}
            AND ({has_metric})
            {'AND ("started", "id") < (?, ?)' if after else ""}
        ORDER BY "started" DESC, "id" DESC
        {f"LIMIT {int(limit)}" if limit >= 0 else ""}
    """
    return Statement(text, [*condition.values, *(after or ())])


def row_columns(metrics: Iterable[str] = METRICS) -> str:
    """The columns of a row that the guide shows; the others are internal to the index."""
    ends = [f"{name}{end}" for name in metrics for end in ENDS]
    return quote_list(["id", "started", *DIMENSIONS, *ends])


def make_condition(
    query: Query, where: Where, *, cells: bool = False, valued: bool = True
) -> Statement:
    """The condition on a row. `valued`: the row must have the query's metric."""
    texts = []
    values: list[Any] = []
    if valued:
        has_value = f"{quote(f'{query.y}_n')} > 0" if cells else f"{quote(query.y)} IS NOT NULL"
        texts.append(has_value)
    for key, alternatives in where:
        name = key.removeprefix("!")
        tests = [_test(name, value) for value in alternatives]
        either = " OR ".join(test.text for test in tests)
        # A missing value is not excluded by `!`.
        texts.append(f"NOT coalesce({either}, FALSE)" if key.startswith("!") else f"({either})")
        values += [value for test in tests for value in test.values]
    for sign, moment in ((">=", query.since), ("<", query.until)):
        if moment and not cells:
            texts.append(f'"started" {sign} ?')
            values.append(moment)
    return Statement(" AND ".join(texts) or "TRUE", values)


def _test(name: str, value: str) -> Statement:
    """The condition of one value: equality, or a range of numbers."""
    column = quote(name)
    if not DIMENSIONS[name].number:
        return Statement(f"{column} = ?", [value])
    low, high = bounds(value)
    tests = []
    if low is not None:
        tests.append(f"{column} >= ?")
    if high is not None:
        tests.append(f"{column} <= ?")
    limits = [limit for limit in (low, high) if limit is not None]
    return Statement(f"({' AND '.join(tests) or f'{column} IS NOT NULL'})", limits)
