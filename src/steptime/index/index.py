"""Answers queries about all rows, with DuckDB in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from steptime.analysis import intervals
from steptime.index import sql
from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS, format_value
from steptime.index.query import FEWEST, Query
from steptime.index.rows import Row
from steptime.index.sql import Statement
from steptime.index.table import Table

Groups = tuple[tuple[str, Any], ...]
Interval = tuple[float | None, float | None]
NO_INTERVAL: Interval = (None, None)
# If every run is a point.
MOST_POINTS = 5_000
# Rows of a stream that are fetched together.
STREAM_BATCH = 2_000
# A median and quartiles need single runs.
MERGEABLE_AGGREGATES = ("best", "min", "max", "mean")
# The half-width of McGill's notch, in interquartile ranges over the root of n.
NOTCH = 1.57


@dataclass(frozen=True)
class Point:
    """What a chart draws: a value made of n runs, its interval, and the run that it names."""

    groups: dict[str, Any]
    value: float
    low: float | None
    high: float | None
    n: int
    run: str
    # If both axes are metrics.
    x: float | None = None
    x_low: float | None = None
    x_high: float | None = None


class Index(Table):
    def values(self, name: str) -> list[str]:
        """All values of a dimension, whatever the query: colours are assigned from them."""
        source = "cells" if name in sql.CELL and self.has_cells else "runs"
        text = f"""
            SELECT DISTINCT CAST({sql.quote(name)} AS VARCHAR) AS value
            FROM {source}
            WHERE value IS NOT NULL
            ORDER BY value
        """
        return [row[0] for row in self._fetch(text, [])]

    def points(self, query: Query) -> list[Point]:
        """Each named series is queried separately, and its points carry its name."""
        if query.x in METRICS:
            return self._scatter_points(query)
        cells = self._can_use_cells(query)
        if query.agg not in MERGEABLE_AGGREGATES or query.err == "iqr":
            cells = False
        points = []
        for series, where in query.branches:
            for row in self._fetch_rows(sql.select_points(query, where, cells=cells)):
                points.append(_make_point(query, _point_groups(query, series, row), row))
        return divide_by_baseline(query, points)

    def facets(self, query: Query, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """How many runs each value of these dimensions would leave, the most common first."""
        cells = self._can_use_cells(query) and "session" not in names
        statement = sql.select_facets(query, query.conditions, names, cells=cells)
        counts: dict[str, dict[str, int]] = {name: {} for name in names}
        for name, value, count in self._fetch(*statement):
            if value is None:
                continue
            text = format_value(float(value)) if DIMENSIONS[name].number else value
            counts[name][text] = count
        facets = {}
        for name, value_counts in counts.items():
            by_count = sorted(value_counts.items(), key=lambda pair: (-pair[1], pair[0]))
            facets[name] = dict(by_count)
        return facets

    def mixed_dimensions(self, query: Query) -> dict[str, int]:
        """Dimensions of which one point holds several values, with the largest number."""
        if query.x in METRICS:
            return {}
        names = [name for name in DIMENSIONS if name not in ALONE]
        cells = self._can_use_cells(query)
        most: Counter[str] = Counter()
        for _, where in query.branches:
            statement = sql.select_mixed(query, where, names, cells=cells)
            # The union of counters keeps the larger of two counts.
            most |= Counter(dict(self._fetch(*statement)))
        return {name: most[name] for name in names if most[name] > 1}

    def list_runs(
        self,
        query: Query,
        limit: int = 50,
        after: tuple[str, str] | None = None,
        metrics: Collection[str] = (),
    ) -> list[Row]:
        """Runs, newest first.

        `metrics`: only these, of the runs that have one of them. Each metric is three columns, and
        most of them are empty."""
        return self._fetch_rows(sql.select_runs(query, query.conditions, limit, after, metrics))

    def stream(self, query: Query) -> Iterator[list[Any]]:
        """The names of all columns, then every run, some thousands at a time."""
        statement = sql.select_runs(query, query.conditions)
        cursor = self.database.cursor().execute(*statement)
        yield [[column[0] for column in cursor.description]]
        while rows := cursor.fetchmany(STREAM_BATCH):
            yield rows

    def find_rows(self, id_part: str) -> list[Row]:
        """The row of this id; without one, up to two whose ids begin or end with it."""
        select = f"SELECT {sql.row_columns()} FROM runs"
        exact = Statement(f'{select} WHERE "id" = ?', [id_part])
        similar = Statement(
            f'{select} WHERE starts_with("id", ?) OR ends_with("id", ?) LIMIT 2',
            [id_part, id_part],
        )
        return self._fetch_rows(exact) or self._fetch_rows(similar)

    def places(self, run_ids: Sequence[str]) -> dict[str, str]:
        """Where the store keeps the imported rows among these."""
        text = """
            SELECT "id", "place" FROM runs
            WHERE "place" IS NOT NULL AND "id" IN (SELECT unnest(?))
        """
        return dict(self._fetch(text, [list(run_ids)]))

    def count_runs(self, query: Query, *, valued: bool = True) -> int:
        """How many runs match; `valued`: only those that have the metric."""
        count = "count(*)"
        if self._can_use_cells(query):
            count = f"sum({sql.quote(f'{query.y}_n')})" if valued else "sum(cell_runs)"
        return int(self._select_matching(query, count, valued=valued)[0][0] or 0)

    def unit(self, query: Query) -> str:
        """What all runs of the query count; empty if they differ or some do not say."""
        if "units" not in METRICS[query.y].unit:
            return ""
        units = self._select_matching(query, 'DISTINCT "unit"', valued=True)
        return str(units[0][0] or "") if len(units) == 1 else ""

    def _select_matching(self, query: Query, what: str, *, valued: bool) -> list[tuple[Any, ...]]:
        cells = self._can_use_cells(query)
        texts = []
        values: list[Any] = []
        for _, where in query.branches:
            condition = sql.make_condition(query, where, cells=cells, valued=valued)
            texts.append(f"({condition.text})")
            values += condition.values
        source = "cells" if cells else "runs"
        return self._fetch(f"SELECT {what} FROM {source} WHERE {' OR '.join(texts)}", values)

    def _can_use_cells(self, query: Query) -> bool:
        """Cells know neither when single runs began nor their session."""
        has_period = bool(query.since or query.until)
        return self.has_cells and not has_period and not _names_session(query)

    def _scatter_points(self, query: Query) -> list[Point]:
        points: list[Point] = []
        for series, where in query.branches:
            limit = MOST_POINTS - len(points)
            for row in self._fetch_rows(sql.select_scatter(query, where, limit)):
                point = Point(
                    groups=_point_groups(query, series, row),
                    value=row[query.y],
                    low=row[f"{query.y}_low"],
                    high=row[f"{query.y}_high"],
                    n=1,
                    run=row["id"],
                    x=row[query.x],
                    x_low=row[f"{query.x}_low"],
                    x_high=row[f"{query.x}_high"],
                )
                points.append(point)
        return points

    def _fetch(self, text: str, values: list[Any]) -> list[tuple[Any, ...]]:
        # Requests come from several threads, and a cursor belongs to one of them.
        return list(self.database.cursor().execute(text, values).fetchall())

    def _fetch_rows(self, statement: Statement) -> list[Row]:
        cursor = self.database.cursor().execute(*statement)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _point_groups(query: Query, series: str, row: Row) -> dict[str, Any]:
    groups = {name: row[name] for name in query.groups}
    if series:
        groups["series"] = series
    return groups


def _make_point(query: Query, groups: dict[str, Any], row: Row) -> Point:
    value = _aggregate(query, row)
    low, high = _interval(query, row, value)
    return Point(groups, value, low, high, row["n"], row["best_id"])


def _aggregate(query: Query, row: Row) -> float:
    if query.agg == "median":
        return float(row["quartiles"][1])
    if query.agg == "mean":
        return float(row["mean"])
    highest = query.agg == "max"
    if query.agg == "best":
        highest = METRICS[query.y].better == "more"
    return float(row["most"] if highest else row["least"])


def _interval(query: Query, row: Row, value: float) -> Interval:
    """That of the run itself if the value is a run's; else one from the spread of the runs."""
    if query.err == "none":
        return NO_INTERVAL
    if query.err == "range":
        return row["least"], row["most"]
    if query.err == "iqr":
        return row["quartiles"][0], row["quartiles"][2]
    if query.err == "deviation":
        return _around(value, row["deviation"])
    if query.agg == "best":
        return row["best_low"], row["best_high"]
    return _around(value, _half_width(query, row))


def _around(value: float, reach: float | None) -> Interval:
    return NO_INTERVAL if reach is None else (value - reach, value + reach)


def _half_width(query: Query, row: Row) -> float | None:
    """95 %: of a mean by Student's t, of a median by McGill's notch. A minimum has none."""
    n = row["n"]
    if n < 2 or query.agg in ("min", "max"):
        return None
    if query.agg == "median":
        quartiles = row["quartiles"]
        return float(NOTCH * (quartiles[2] - quartiles[0]) / sqrt(n))
    return intervals.student_quantile(n - 1) * float(row["deviation"]) / sqrt(n)


def divide_by_baseline(query: Query, points: list[Point]) -> list[Point]:
    """Every value divided by that of the baseline with otherwise equal groups.

    A point without a baseline is left out."""
    if not query.rel:
        return points
    name, _, value = query.rel.partition(":")
    baselines = _find_baselines(name, value, points)
    divided = []
    for point in points:
        # A baseline of 0 has no ratios either.
        base = baselines.get(_other_groups(point, name))
        if base:
            low = None if point.low is None else point.low / base
            high = None if point.high is None else point.high / base
            ratio = point.value / base
            divided.append(Point(point.groups, ratio, low, high, point.n, point.run))
    return divided


def _find_baselines(name: str, value: str, points: list[Point]) -> dict[Groups, float]:
    candidates = [point for point in points if point.groups[name] is not None]
    if value == FEWEST:
        # From the most to the fewest: the last of each group stays.
        candidates.sort(key=lambda point: -point.groups[name])
    else:
        candidates = [point for point in candidates if format_value(point.groups[name]) == value]
    return {_other_groups(point, name): point.value for point in candidates}


def _other_groups(point: Point, name: str) -> Groups:
    return tuple(sorted((key, value) for key, value in point.groups.items() if key != name))


def _names_session(query: Query) -> bool:
    keys = [key for key, _ in query.where]
    for _, where in query.series:
        keys += [key for key, _ in where]
    return "session" in query.groups or any(key.lstrip("!") == "session" for key in keys)
