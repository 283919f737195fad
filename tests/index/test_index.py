"""DuckDB's answers against a few lines of plain Python that say what they should be."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptime.index import index as indexing
from steptime.index import table
from steptime.index.catalogue import DIMENSIONS
from steptime.index.index import Index, Point
from steptime.index.query import Query, bounds, from_url
from steptime.index.rows import ENDS

Row = dict[str, Any]
numbers = st.floats(1, 1e6)
rows_of = st.lists(
    st.fixed_dictionaries(
        {
            "model": st.sampled_from("abc"),
            "precision": st.sampled_from(["fp32", "int8", None]),
            "framework": st.sampled_from(["jax", "pytorch"]),
            "replica_batch": st.sampled_from([1, 8, 64, None]),
            "status": st.sampled_from(["ok", "ok", "ok", "crashed"]),
            "plausible": st.sampled_from(["yes", "yes", "no"]),
            "throughput": st.one_of(st.none(), numbers),
            "step_time": st.one_of(st.none(), numbers),
        }
    ),
    max_size=40,
)
queries = st.builds(
    Query,
    y=st.sampled_from(["throughput", "step_time"]),
    x=st.sampled_from(["model", "replica_batch"]),
    by=st.sampled_from([(), ("precision",), ("framework", "precision")]),
    split=st.sampled_from(["", "framework"]),
    agg=st.sampled_from(["best", "min", "max", "mean", "median"]),
    err=st.sampled_from(["none", "range"]),
    where=st.sampled_from(
        [
            (),
            (("model", ("a", "b")),),
            (("!model", ("a",)),),
            (("replica_batch", ("2..64",)),),
            (("!precision", ("fp32",)),),
            (("status", ("crashed",)),),
            (("replica_batch", ("1", "8")), ("framework", ("jax",))),
        ]
    ),
)
PICK: dict[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
}


@cache
def shared() -> Index:
    return Index()  # to open one takes longer than to ask it


def indexed(rows: list[Row]) -> Index:
    index = shared()
    index.database.execute("DELETE FROM runs; DROP TABLE IF EXISTS cells")
    index.has_cells = False
    index.add({"id": f"{number:04}", "started": "", **row} for number, row in enumerate(rows))
    return index


def both(rows: list[Row]) -> Iterator[Index]:
    """Answering by rows, then by cells."""
    index = indexed(rows)
    yield index
    index.make_cells()
    yield index


def wanted(query: Query, rows: list[Row], but: str = "") -> list[Row]:
    """What the query's words say, spelled out."""
    found = [row for row in rows if row.get(query.y) is not None]
    for key, values in query.conditions:
        name, no = key.removeprefix("!"), key.startswith("!")
        if name != but:
            found = [
                row
                for row in found
                if any(fits(name, row.get(name), value) for value in values) != no
            ]
    return found


def fits(name: str, value: Any, text: str) -> bool:
    if value is None:
        return False
    if name != "replica_batch":
        return bool(value == text)
    low, high = bounds(text)
    return (low is None or value >= low) and (high is None or value <= high)


def told(query: Query, rows: list[Row]) -> dict[tuple[Any, ...], tuple[float, int]]:
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in wanted(query, rows):
        groups[tuple(row.get(name) for name in query.groups)].append(row[query.y])
    best = max if query.y == "throughput" else min
    pick = {**PICK, "best": best}[query.agg]
    return {key: (pick(values), len(values)) for key, values in groups.items()}


def found(points: list[Point]) -> dict[tuple[Any, ...], tuple[float, int]]:
    return {tuple(point.groups.values()): (point.value, point.n) for point in points}


def same(
    a: dict[tuple[Any, ...], tuple[float, int]], b: dict[tuple[Any, ...], tuple[float, int]]
) -> bool:
    return a.keys() == b.keys() and all(
        math.isclose(a[key][0], b[key][0], rel_tol=1e-9) and a[key][1] == b[key][1] for key in a
    )


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(rows_of, queries)
def test_points_equal_plain_python_from_rows_and_from_cells(rows: list[Row], query: Query) -> None:
    for index in both(rows):
        assert same(found(index.points(query)), told(query, rows))
        assert index.count_runs(query) == sum(n for _, n in told(query, rows).values())


@settings(max_examples=10, deadline=None)
@given(rows_of, rows_of, queries)
def test_cells_are_updated_with_their_rows(
    before: list[Row], after: list[Row], query: Query
) -> None:
    index = indexed(before)
    index.make_cells()
    gone = [f"{number:04}" for number in range(0, len(before), 3)]
    index.add(
        ({"id": f"{number:04}", **row} for number, row in enumerate(after, 2)), instead_of=gone
    )
    kept = {f"{number:04}": row for number, row in enumerate(before) if number % 3}
    kept |= {f"{number:04}": row for number, row in enumerate(after, 2)}
    assert same(found(index.points(query)), told(query, list(kept.values())))


@settings(max_examples=15, deadline=None)
@given(rows_of, queries)
def test_facets_count_under_all_filters_but_their_own(rows: list[Row], query: Query) -> None:
    names = ["model", "precision", "framework"]
    for index in both(rows):
        counts = index.facets(query, names)
        for name in names:
            plain = Counter(
                row[name] for row in wanted(query, rows, but=name) if row[name] is not None
            )
            assert counts[name] == dict(plain)


@settings(max_examples=15, deadline=None)
@given(rows_of, queries)
def test_mixed_dimensions_names_what_a_point_has_several_of(rows: list[Row], query: Query) -> None:
    sets: dict[tuple[Any, ...], dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for row in wanted(query, rows):
        for name in ("model", "precision", "framework", "replica_batch"):
            if row[name] is not None and name not in query.groups:
                sets[tuple(row[group] for group in query.groups)][name].add(row[name])
    most: dict[str, int] = {}
    for point in sets.values():
        for name, values in point.items():
            most[name] = max(most.get(name, 0), len(values))
    for index in both(rows):
        assert index.mixed_dimensions(query) == {
            name: count for name, count in most.items() if count > 1
        }


SPEEDS = [
    {
        "model": "a",
        "framework": f,
        "throughput": v,
        "throughput_low": v - 1,
        "throughput_high": v + 1,
    }
    for f, v in (("jax", 20.0), ("pytorch", 10.0), ("pytorch", 8.0))
]
ROWS = [{**row, "status": "ok", "plausible": "yes"} for row in SPEEDS]


def test_points_with_best_have_the_run_and_its_own_interval() -> None:
    (point,) = indexed(ROWS).points(from_url("framework=pytorch"))
    assert (point.run, point.value, point.low, point.high, point.n) == ("0001", 10.0, 9.0, 11.0, 2)


def test_points_with_rel_are_divided_by_the_baseline_of_their_group() -> None:
    points = indexed(ROWS).points(from_url("by=framework&rel=framework:pytorch"))
    assert {point.groups["framework"]: point.value for point in points} == {
        "jax": 2.0,
        "pytorch": 1.0,
    }


def test_points_of_a_named_series_follow_its_own_filters() -> None:
    points = indexed(ROWS).points(from_url("s=ours|framework=pytorch&s=theirs|framework=jax"))
    assert {point.groups["series"]: point.value for point in points} == {
        "ours": 10.0,
        "theirs": 20.0,
    }
    assert shared().count_runs(from_url("s=ours|framework=pytorch")) == 2


def test_points_with_mean_have_students_interval() -> None:
    (point,) = indexed(ROWS).points(from_url("framework=pytorch&agg=mean"))
    assert point.low == pytest.approx(9 - 12.706 * math.sqrt(2) / math.sqrt(2), abs=0.01)


def test_add_replaces_a_row_of_the_same_id() -> None:
    index = indexed(ROWS)
    index.add([{**ROWS[0], "id": "0000", "started": "", "throughput": 30.0}])
    assert index.count() == 3 and max(point.value for point in index.points(from_url(""))) == 30


def test_points_of_two_metrics_are_single_runs() -> None:
    rows = [{**row, "task_loss": 0.5} for row in ROWS]
    assert len(indexed(rows).points(from_url("x=task_loss"))) == 3


def test_list_runs_pages_cover_every_run_once() -> None:
    index, after, seen = indexed(ROWS), None, []
    while page := index.list_runs(from_url(""), limit=2, after=after):
        seen += [row["id"] for row in page]
        after = (page[-1]["started"], page[-1]["id"])
    assert seen == ["0002", "0001", "0000"]


def test_stream_yields_all_runs_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "STREAM_BATCH", 2)
    index = indexed(ROWS)
    ((names,), *batches) = index.stream(from_url(""))
    assert [len(batch) for batch in batches] == [2, 1]
    assert [
        dict(zip(names, row, strict=True)) for batch in batches for row in batch
    ] == index.list_runs(from_url(""))


def test_list_runs_of_some_metrics_has_every_dimension_and_only_these() -> None:
    index = indexed([*ROWS, {**ROWS[0], "throughput": None, "step_time": 1.0}])
    _, whole, *_ = index.list_runs(from_url(""))
    few, *_ = index.list_runs(from_url(""), metrics=["throughput"])  # the newest has none
    told = {"id", "started", *DIMENSIONS, *(f"throughput{end}" for end in ENDS)}
    assert (
        few == {name: value for name, value in whole.items() if name in told} and set(few) == told
    )


def test_points_treat_text_that_looks_like_sql_as_text() -> None:
    row = {**ROWS[0], "model": "'; DROP TABLE runs; --"}
    index = indexed([row])
    query = Query(where=(("model", ("'; DROP TABLE runs; --",)),))
    assert len(index.points(query)) == 1 and index.count() == 1


@pytest.mark.parametrize(("runs", "cells"), [(3, False), (8, True)])
def test_summarise_makes_cells_if_many_runs_repeat_few_configurations(
    runs: int, cells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "CELLS_FROM", 5)
    index = indexed([ROWS[0]] * runs)
    index.summarise()
    assert index.has_cells is cells and index.count_runs(from_url("")) == runs


def test_summarise_makes_no_cells_if_no_run_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CELLS_FROM", 5)
    index = indexed([{**ROWS[0], "model": str(number)} for number in range(8)])
    index.summarise()
    assert not index.has_cells


def test_add_leaves_out_numbers_that_are_none() -> None:
    rows = [
        {**ROWS[0], "throughput": value}
        for value in ("12.5", "fast", float("nan"), float("inf"), None)
    ]
    assert [row["throughput"] for row in indexed(rows).list_runs(from_url(""))][::-1] == [
        12.5,
        None,
        None,
        None,
        None,
    ]


COUNTED = [
    {
        **ROWS[0],
        "devices": count,
        "throughput": speed,
        "throughput_per_device": speed / count,
        "replica_batch": size,
    }
    for count, speed, size in ((2.0, 20.0, 64.0), (8.0, 60.0, 1_048_576.0), (4.0, 36.0, 64.0))
]


@pytest.mark.parametrize(
    "query", ["y=efficiency", "y=throughput_per_device&x=devices&rel=devices:2"]
)
def test_points_of_efficiency_are_relative_to_the_fewest_devices(query: str) -> None:
    points = indexed(COUNTED).points(from_url(query))
    assert {point.groups["devices"]: point.value for point in points} == {2: 1.0, 4: 0.9, 8: 0.75}


def test_facets_spell_numbers_as_queries_do() -> None:
    index = indexed(COUNTED)
    assert index.facets(from_url(""), ["replica_batch"]) == {
        "replica_batch": {"64": 2, "1048576": 1}
    }
    assert index.count_runs(from_url("replica_batch=1048576")) == 1


def test_points_of_two_metrics_name_their_series() -> None:
    points = indexed([{**row, "power": 1.0} for row in ROWS]).points(
        from_url("x=power&s=ours|framework=pytorch&s=theirs|framework=jax")
    )
    assert Counter(point.groups["series"] for point in points) == {"ours": 2, "theirs": 1}


def test_mixed_dimensions_omits_what_each_series_fixes() -> None:
    index = indexed(ROWS)
    assert index.mixed_dimensions(from_url("")) == {"framework": 2}
    assert index.mixed_dimensions(from_url("s=ours|framework=pytorch&s=theirs|framework=jax")) == {}


@pytest.mark.parametrize(
    "text",
    [
        "replica_batch=1e999",
        "replica_batch=nan",
        "replica_batch=-1..1e-999",
        f"scaling=weak&batch={'9' * 400}",
    ],
    ids=["infinite", "none", "tiny", "long"],
)
def test_points_of_numbers_out_of_range_are_empty(text: str) -> None:
    assert indexed(COUNTED).points(from_url(text)) == []


@pytest.mark.parametrize(
    ("units", "query", "unit"),
    [
        (("images", "images"), "", "images"),
        (("images", "tokens"), "", ""),
        (("images", None), "", ""),
        (("images", "tokens"), "framework=pytorch", "images"),
        (("images", "tokens"), "unit=tokens", "tokens"),
        (("images", "images"), "model=none-of-them", ""),
    ],
)
def test_unit_is_named_if_all_runs_share_it(
    units: tuple[str | None, ...], query: str, unit: str
) -> None:
    frameworks = ("pytorch", "jax")
    rows = [
        {**ROWS[0], "framework": name, "unit": one}
        for name, one in zip(frameworks, units, strict=True)
    ]
    assert [index.unit(from_url(query)) for index in both(rows)] == [unit, unit]
