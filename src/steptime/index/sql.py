"""Questions as SQL text with bound values: names come from the catalogue only, and every one is quoted."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from typing import Any

from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.query import Query, Where, bounds
from steptime.index.rows import COLUMNS, ENDS

Statement = tuple[str, list[Any]]
CELL = tuple(name for name in DIMENSIONS if name != "session")
"""What makes a configuration: runs that agree in these are repeats."""
MERGEABLE = ("n", "least", "most", "total", "squares", "best_id", "best_low", "best_high")


def chart(query: Query, where: Where, *, cells: bool = False) -> Statement:
    """One row for each point: its dimensions, then n, the summary, and the run that is best."""
    groups = [quoted(name) for name in query.groups]
    test, values = tested(query, where, cells=cells)
    columns = ", ".join([*groups, *(_merged(query.y) if cells else _summary(query))])
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    text = f"SELECT {columns} FROM {'cells' if cells else 'runs'} WHERE {test}{by}"
    order = f" ORDER BY {', '.join(f'points.{name}' for name in groups)}" if groups else ""
    return (
        f"{f'SELECT * FROM ({text}) AS points' if cells else _named_best(query.y, text)}{order}",
        values,
    )


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
    """How many runs each value of each dimension would leave, under all filters but the dimension's own. Dimensions
    that nothing filters are counted in one pass."""
    filtered = {key.removeprefix("!") for key, _ in where}
    source, count = (
        ("cells", f"CAST(sum({quoted(query.y + '_n')}) AS BIGINT)")
        if cells
        else ("runs", "count(*)")
    )
    free = [name for name in names if name not in filtered]
    parts, values = list[str](), list[Any]()
    if free:
        test, values = tested(query, where, cells=cells)
        inner = (
            f"SELECT {_row_of_sets(free)}, {count} AS n FROM {source} WHERE {test} {_sets(free)}"
        )
        value = f"coalesce({', '.join(f'CAST({quoted(name)} AS VARCHAR)' for name in free)})"
        parts.append(f"SELECT {_which(free)} AS name, {value} AS value, n FROM ({inner})")
    for name in names:
        if name in filtered:
            test, bound = tested(
                query,
                tuple(pair for pair in where if pair[0].removeprefix("!") != name),
                cells=cells,
            )
            value = f"CAST({quoted(name)} AS VARCHAR)"
            parts.append(
                f"SELECT '{name}', {value} AS value, {count} FROM {source} WHERE {test} GROUP BY value"
            )
            values = [*values, *bound]
    return " UNION ALL ".join(parts), values


def mixed(query: Query, where: Where, names: Iterable[str], *, cells: bool = False) -> Statement:
    """For each dimension, the most values that any one point has of it: more than one, and the point mixes them."""
    kept = [name for name in names if name not in query.groups]
    groups = "".join(f"{quoted(name)}, " for name in query.groups)
    test, values = tested(query, where, cells=cells)
    told = " OR ".join(f"{quoted(name)} IS NOT NULL" for name in kept)
    source = f"{'cells' if cells else 'runs'} WHERE {test} {_sets(kept, groups)}"
    pairs = f"SELECT {groups}{_row_of_sets(kept)}, ({told}) AS told FROM {source}"
    points = f"SELECT {groups}grouped, count_if(told) AS n FROM ({pairs}) GROUP BY {groups}grouped"
    return f"SELECT {_which(kept)} AS name, max(n) AS n FROM ({points}) GROUP BY grouped", values


def _sets(names: list[str], groups: str = "") -> str:
    """One pass over the rows, grouped by each name by itself."""
    return f"GROUP BY GROUPING SETS ({', '.join(f'({groups}{quoted(name)})' for name in names)})"


def _row_of_sets(names: list[str]) -> str:
    listed = ", ".join(quoted(name) for name in names)
    return f"{listed}, GROUPING_ID({listed}) AS grouped"


def _which(names: list[str]) -> str:
    """The name by which a row of grouping sets was grouped: the one whose bit is not set."""
    last, bits = len(names) - 1, (1 << len(names)) - 1
    cases = " ".join(
        f"WHEN {bits ^ (1 << (last - number))} THEN '{name}'" for number, name in enumerate(names)
    )
    return f"CASE grouped {cases} END"


def listing(
    query: Query,
    where: Where,
    limit: int = -1,
    after: tuple[str, str] | None = None,
    metrics: Collection[str] = (),
) -> Statement:
    """Newest first, all or a page at a time: what comes after the run that started then and has this id. Where metrics
    are named, runs that have none of them are left out, and so are all other metrics."""
    test, values = tested(query, where, valued=False)
    page = ' AND ("started", "id") < (?, ?)' if after else ""
    told = " OR ".join(f"{quoted(name)} IS NOT NULL" for name in metrics) or "TRUE"
    order = ' ORDER BY "started" DESC, "id" DESC' + (f" LIMIT {int(limit)}" if limit >= 0 else "")
    text = f"SELECT {listed(metrics or METRICS)} FROM runs WHERE {test} AND ({told}){page}{order}"
    return text, [*values, *(after or ())]


def tested(query: Query, where: Where, *, cells: bool = False, valued: bool = True) -> Statement:
    """The condition on a row, with its values."""
    texts, values = [], []
    if valued:
        texts.append(f"{quoted(query.y + '_n')} > 0" if cells else f"{quoted(query.y)} IS NOT NULL")
    for key, wanted in where:
        name = key.removeprefix("!")
        alternatives, bound = zip(*(_one(name, value) for value in wanted), strict=True)
        either = " OR ".join(alternatives)
        texts.append(f"NOT coalesce({either}, FALSE)" if key.startswith("!") else f"({either})")
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


def _summary(query: Query) -> list[str]:
    column = quoted(query.y)
    ranked = query.agg == "median" or query.err == "iqr"  # the only costly one
    return [
        f"count({column}) AS n", f"min({column}) AS least", f"max({column}) AS most", f"avg({column}) AS mean",
        f"stddev_samp({column}) AS deviation",
        f"{f'quantile_cont({column}, [0.25, 0.5, 0.75])' if ranked else 'NULL'} AS quartiles",
        f"{_pick(query.y)}(rowid, {column}) AS best",
    ]  # fmt: skip


def _named_best(name: str, text: str) -> str:
    """Rows are picked by their number, and only the picked ones are looked up: names are long."""
    ends = f'best."id" AS best_id, best.{quoted(f"{name}_low")} AS best_low, best.{quoted(f"{name}_high")} AS best_high'
    return f"SELECT points.*, {ends} FROM ({text}) AS points LEFT JOIN runs AS best ON best.rowid = points.best"


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


def cells_of(told: Container[str], where: str = "TRUE") -> str:
    """One row for each configuration, with what merges exactly. `told`: metrics that some run has."""
    columns = []
    for name in METRICS:
        own, low, high = quoted(name), quoted(f"{name}_low"), quoted(f"{name}_high")
        pick = _pick(name)
        parts = (
            f"count({own})", f"min({own})", f"max({own})", f"sum({own})", f"sum({own} * {own})",
            f'{pick}("id", {own})', f"{pick}({low}, {own})", f"{pick}({high}, {own})",
        )  # fmt: skip
        if name not in told:
            none = "CAST(NULL AS DOUBLE)"
            parts = (
                "CAST(0 AS BIGINT)",
                none,
                none,
                none,
                none,
                "CAST(NULL AS VARCHAR)",
                none,
                none,
            )
        columns += [
            f"{part} AS {quoted(f'{name}_{word}')}"
            for part, word in zip(parts, MERGEABLE, strict=True)
        ]
    groups = ", ".join(["cell", *(quoted(name) for name in CELL)])
    return f"SELECT {groups}, count(*) AS cell_runs, {', '.join(columns)} FROM runs WHERE {where} GROUP BY {groups}"


def cell() -> str:
    """A number for a configuration, so that its rows are found quickly; two may share one, and are told apart."""
    return f"hash({', '.join(quoted(name) for name in CELL)})"


def foreign() -> str:
    """Rows from a file of imported ones. What the catalogue has no name for, and what is no number where one is needed,
    stays in the file."""
    told = {
        "source": '"source"',
        "status": "CASE WHEN coalesce(failure, '') = '' THEN 'ok' ELSE 'failed' END",
        "plausible": "CASE WHEN coalesce(quarantine, '') = '' THEN 'yes' ELSE 'no' END",
    }
    parts = {
        "dimensions": list(DIMENSIONS),
        "metrics": [name for name in COLUMNS if name not in DIMENSIONS],
    }
    types = dict.fromkeys(
        ("id", "kept_in", "started", "source", "failure", "quarantine"), "VARCHAR"
    )
    for part, names in parts.items():
        types[part] = f"STRUCT({', '.join(f'{quoted(name)} VARCHAR' for name in names)})"
    columns = "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in types.items()) + "}"
    form = "format = 'newline_delimited', ignore_errors = TRUE"
    source = f"read_json(?, {form}, columns = {columns}, maximum_object_size = ?)"
    values = [
        f"{told.get(name) or _number_or_word(name, f'{part}.{quoted(name)}')} AS {quoted(name)}"
        for part, names in parts.items()
        for name in names
    ]
    rows = f"""SELECT DISTINCT ON ("id") "id", coalesce("started", '') AS started, kept_in AS place, {", ".join(values)}
        FROM {source} WHERE "id" IS NOT NULL AND kept_in IS NOT NULL"""
    return f'SELECT "id", "started", "place", {cell()} AS cell, {", ".join(map(quoted, COLUMNS))} FROM ({rows})'


def _number_or_word(name: str, value: str) -> str:
    if name in DIMENSIONS and not DIMENSIONS[name].number:
        return value
    return f"CASE WHEN isfinite(TRY_CAST({value} AS DOUBLE)) THEN TRY_CAST({value} AS DOUBLE) END"


def listed(metrics: Iterable[str] = METRICS) -> str:
    """A row's names in the guide; the others are the index's own affair."""
    told = (f"{name}{end}" for name in metrics for end in ENDS)
    return ", ".join(map(quoted, ("id", "started", *DIMENSIONS, *told)))


def _pick(name: str) -> str:
    return "arg_max" if METRICS[name].better == "more" else "arg_min"


def quoted(name: str) -> str:
    """`precision` and `user` are words of SQL; names that hold a quote are not in the catalogue."""
    return f'"{name}"'
