"""Which charts are drawn unasked."""

from __future__ import annotations

from typing import Any

from steptime.charts.usual_views import focus_query, usual_queries
from steptime.index.query import Query


def row(**changes: Any) -> dict[str, Any]:
    known = {
        "source": "steptime",
        "model": "m",
        "framework": "pytorch",
        "precision": "fp32",
        "replica_batch": 8.0,
    }
    return {**known, "throughput": 1.0, **changes}


def test_usual_queries_need_two_values_on_the_axis() -> None:
    assert usual_queries([row(), row(framework="jax")]) == []
    assert [
        view.x for view in usual_queries([row(), row(model="other"), row(precision="bf16")])
    ] == [
        "model",
        "precision",
    ]


def test_focus_query_fixes_all_else_to_show_most() -> None:
    rows = [
        row(model="a"),
        row(model="b"),
        row(model="b", replica_batch=16.0),
        row(model="b", replica_batch=16.0),
    ]
    view = focus_query(Query(x="replica_batch"), rows)
    assert view is not None and dict(view.where) == {"source": ("steptime",), "model": ("b",)}


def test_focus_query_spells_numbers_as_queries_do() -> None:
    rows = [row(), row(precision="bf16"), row(replica_batch=16.0)]
    view = focus_query(Query(x="precision"), rows)
    assert view is not None and ("replica_batch", ("8",)) in view.where


def test_usual_queries_prefer_results_of_steptime() -> None:
    rows = [row(), row(model="other"), *(row(source="lambda", model=f"m{n}") for n in range(9))]
    assert [dict(view.where)["source"] for view in usual_queries(rows)] == [("steptime",)]


def test_usual_queries_without_throughput_take_the_commonest_metric() -> None:
    rows = [row(throughput=None, flops=1.0), row(throughput=None, flops=2.0, model="other")]
    assert [view.y for view in usual_queries(rows)] == ["flops"]


def test_usual_queries_include_accuracy_loss_if_precisions_have_one() -> None:
    rows = [row(task_loss=0.0), row(precision="int8", task_loss=0.4)]
    assert usual_queries(rows)[-1].x == "task_loss"
