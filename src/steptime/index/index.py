"""Answers to questions about all rows, by DuckDB in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from steptime.analysis import intervals
from steptime.index import sql
from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS, format_value
from steptime.index.query import FEWEST, Query, Where
from steptime.index.rows import ENDS, Row
from steptime.index.table import Table

Groups = tuple[tuple[str, Any], ...]
MOST_POINTS = 5_000  # where every run is one
AT_ONCE = 2_000
BY_CELLS = ("best", "min", "max", "mean")


@dataclass(frozen=True)
class Point:
    """What a chart draws: a value made of n runs, with its doubt, and the run that it names."""

    groups: dict[str, Any]
    value: float
    low: float | None
    high: float | None
    n: int
    run: str
    x: float | None = None  # where both axes are metrics
    x_low: float | None = None
    x_high: float | None = None


class Index(Table):
    def values(self, name: str) -> list[str]:
        """All that there are, whatever is asked for: colours are given by them."""
        column, source = f"CAST({sql.quoted(name)} AS VARCHAR)", self._source(name in sql.CELL)
        question = f"SELECT DISTINCT {column} AS v FROM {source} WHERE v IS NOT NULL ORDER BY v"
        return [row[0] for row in self._asked(question, [])]

    def points(self, query: Query) -> list[Point]:
        """Named series each answer for themselves and carry their name."""
        if query.x in METRICS:
            return self._scattered(query)
        found, cells = [], self._by_cells(query) and query.agg in BY_CELLS and query.err != "iqr"
        for name, where in query.branches:
            for row in self._named(sql.chart(query, where, cells=cells)):
                found.append(_point(query, _groups(query, name, row), row))
        return divide_by_baseline(query, found)

    def facets(self, query: Query, names: Sequence[str]) -> dict[str, dict[str, int]]:
        cells = self._by_cells(query) and "session" not in names
        counts: dict[str, dict[str, int]] = {name: {} for name in names}
        for name, value, count in self._asked(
            *sql.facets(query, query.conditions, names, cells=cells)
        ):
            if value is not None:
                counts[name][format_value(float(value)) if DIMENSIONS[name].number else value] = (
                    count
                )
        return {
            name: dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
            for name, found in counts.items()
        }

    def mixed(self, query: Query) -> dict[str, int]:
        """Dimensions of which one point holds several values, with how many at the most."""
        names = [name for name in DIMENSIONS if name not in ALONE]
        if query.x in METRICS:
            return {}
        most: Counter[str] = Counter()
        for _, where in query.branches:
            most |= Counter(
                dict(self._asked(*sql.mixed(query, where, names, cells=self._by_cells(query))))
            )
        return {name: most[name] for name in names if most[name] > 1}

    def listing(
        self,
        query: Query,
        limit: int = 50,
        after: tuple[str, str] | None = None,
        metrics: Collection[str] = (),
    ) -> list[Row]:
        """`metrics`: only these, of the runs that have one of them. Each is three columns, most of them empty."""
        return self._named(sql.listing(query, query.conditions, limit, after, metrics))

    def stream(self, query: Query) -> Iterator[list[Any]]:
        """The names of all columns, then every run, however many, some thousands at a time."""
        text, values = sql.listing(query, query.conditions)
        cursor = self.database.cursor().execute(text, values)
        yield [[column[0] for column in cursor.description]]
        while some := cursor.fetchmany(AT_ONCE):
            yield some

    def find_rows(self, id_part: str) -> list[Row]:
        """Whose id is this, or else begins or ends with it."""
        text = f'SELECT {sql.listed()} FROM runs WHERE "id" = ?'
        parts = f'SELECT {sql.listed()} FROM runs WHERE starts_with("id", ?) OR ends_with("id", ?) LIMIT 2'
        return self._named((text, [id_part])) or self._named((parts, [id_part, id_part]))

    def places(self, runs: Sequence[str]) -> dict[str, str]:
        """Where in their store the imported rows among these lie."""
        text = 'SELECT "id", "place" FROM runs WHERE "place" IS NOT NULL AND "id" IN (SELECT unnest(?))'
        return dict(self._asked(text, [list(runs)]))

    def matching(self, query: Query, *, valued: bool = True) -> int:
        """How many runs; `valued`: only those that have the metric."""
        cells = self._by_cells(query)
        count = (
            f"sum({sql.quoted(query.y + '_n') if valued else 'cell_runs'})" if cells else "count(*)"
        )
        return int(self._of_matching(query, count, valued=valued)[0][0] or 0)

    def unit(self, query: Query) -> str:
        """What is counted in all runs that are asked for; empty: nothing, not the same, or in some it is not told."""
        if "units" not in METRICS[query.y].unit:
            return ""
        found = self._of_matching(query, 'DISTINCT "unit"', valued=True)
        return str(found[0][0] or "") if len(found) == 1 else ""

    def _of_matching(self, query: Query, what: str, *, valued: bool) -> list[tuple[Any, ...]]:
        cells = self._by_cells(query)
        parts = [
            sql.tested(query, where, cells=cells, valued=valued) for _, where in query.branches
        ]
        test, values = (
            " OR ".join(f"({text})" for text, _ in parts),
            [one for _, bound in parts for one in bound],
        )
        return self._asked(f"SELECT {what} FROM {self._source(cells)} WHERE {test}", values)

    def _source(self, cells: bool) -> str:
        return "cells" if cells and self.has_cells else "runs"

    def _by_cells(self, query: Query) -> bool:
        """Cells know nothing of single runs: neither when they began nor in which session."""
        return self.has_cells and not (query.since or query.until) and not _names_session(query)

    def _scattered(self, query: Query) -> list[Point]:
        found: list[Point] = []
        for name, where in query.branches:
            for row in self._named(sql.scatter(query, where, MOST_POINTS - len(found))):
                (value, low, high), x = (
                    [row[f"{axis}{end}"] for end in ENDS] for axis in (query.y, query.x)
                )
                found.append(Point(_groups(query, name, row), value, low, high, 1, row["id"], *x))
        return found

    def _asked(self, text: str, values: list[Any]) -> list[tuple[Any, ...]]:
        # Requests come from several threads: each has its own place in the answers.
        return list(self.database.cursor().execute(text, values).fetchall())

    def _named(self, statement: sql.Statement) -> list[Row]:
        cursor = self.database.cursor().execute(*statement)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _groups(query: Query, series: str, row: Row) -> dict[str, Any]:
    return {key: row[key] for key in query.groups} | ({"series": series} if series else {})


def _point(query: Query, groups: dict[str, Any], row: Row) -> Point:
    best = row["most"] if METRICS[query.y].better == "more" else row["least"]
    picks = {"best": best, "min": row["least"], "max": row["most"], "mean": row["mean"]}
    value = row["quartiles"][1] if query.agg == "median" else picks[query.agg]
    return Point(groups, value, *_doubt(query, row, value), row["n"], row["best_id"])


def _doubt(query: Query, row: Row, value: float) -> tuple[float | None, float | None]:
    """Of a real run its own interval; of a mean and a median that of the runs' spread."""
    if query.err == "none":
        return None, None
    if query.err == "range":
        return row["least"], row["most"]
    if query.err == "deviation":
        spread = row["deviation"]
        return (None, None) if spread is None else (value - spread, value + spread)
    if query.err == "iqr":
        return row["quartiles"][0], row["quartiles"][2]
    if query.agg == "best":
        return row["best_low"], row["best_high"]
    reach = _reach(query, row)
    return (None, None) if reach is None else (value - reach, value + reach)


def _reach(query: Query, row: Row) -> float | None:
    """95 % of a mean by Student's t, of a median by McGill's notch; a lone least or most has none."""
    if row["n"] < 2 or query.agg in ("min", "max"):
        return None
    if query.agg == "median":
        return float(1.57 * (row["quartiles"][2] - row["quartiles"][0]) / sqrt(row["n"]))
    return intervals.student_quantile(row["n"] - 1) * float(row["deviation"]) / sqrt(row["n"])


def divide_by_baseline(query: Query, points: list[Point]) -> list[Point]:
    """Every value divided by that of the baseline with otherwise equal groups; without one there is no point."""
    if not query.rel:
        return points
    name, _, wanted = query.rel.partition(":")
    base = _baselines(name, wanted, points)
    found = []
    for point in points:
        if scale := base.get(_rest(point, name)):
            low, high = (None if end is None else end / scale for end in (point.low, point.high))
            found.append(Point(point.groups, point.value / scale, low, high, point.n, point.run))
    return found


def _baselines(name: str, wanted: str, points: list[Point]) -> dict[Groups, float]:
    told = [point for point in points if point.groups[name] is not None]
    if wanted == FEWEST:
        most_first = sorted(told, key=lambda point: -point.groups[name])
        return {_rest(point, name): point.value for point in most_first}  # the last of each stays
    return {
        _rest(point, name): point.value
        for point in told
        if format_value(point.groups[name]) == wanted
    }


def _rest(point: Point, name: str) -> Groups:
    return tuple(sorted((key, value) for key, value in point.groups.items() if key != name))


def _names_session(query: Query) -> bool:
    own: Where = tuple(pair for _, where in query.series for pair in where)
    return "session" in query.groups or any(
        key.lstrip("!") == "session" for key, _ in (*query.where, *own)
    )
