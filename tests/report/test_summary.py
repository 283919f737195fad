"""The sentence that matters."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[report]'")

from steptime.index.query import from_url
from steptime.index.workspace import Workspace
from steptime.report.summary import compared_dimension, headline
from steptime.store.folder import FolderStore


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(FolderStore(tmp_path_factory.mktemp("store")))


def row(number: int, speed: float, **changes: Any) -> dict[str, Any]:
    known = {
        "id": str(number),
        "model": "m",
        "phase": "training",
        "framework": "pytorch",
        "unit": "images",
    }
    ends = {"throughput": speed, "throughput_low": 0.99 * speed, "throughput_high": 1.01 * speed}
    return {**known, "mode": "eager", "precision": "fp32", **ends, **changes}


def headline_of(workspace: Workspace, query: str, rows: list[dict[str, Any]]) -> str:
    return headline(workspace, from_url(query), rows)


def test_headline_of_one_pair_is_a_ratio_with_its_interval(workspace: Workspace) -> None:
    rows = [row(1, 100.0), row(2, 200.0, precision="bf16")]
    assert headline_of(workspace, "by=precision", rows) == (
        "Throughput of bf16 is 2 times that of fp32 (1.972 … 2.028): bf16 is better."
    )


def test_headline_names_the_larger_side_first(workspace: Workspace) -> None:
    rows = [row(1, 100.0), row(2, 50.0, precision="bf16")]
    assert "Throughput of fp32 is 2 times that of bf16" in headline_of(
        workspace, "by=precision", rows
    )
    slow = [{**one, "step_time": speed} for one, speed in zip(rows, (1.0, 3.0), strict=True)]
    assert headline_of(workspace, "y=step_time&by=precision", slow).endswith(
        "(no interval): no difference is shown."
    )


def test_headline_of_few_configurations_counts_wins(workspace: Workspace) -> None:
    rows = [row(n, 100.0 * n, model=f"m{n}") for n in (1, 2)]
    rows += [
        row(3, 150.0, model="m1", precision="bf16"),
        row(4, 100.0, model="m2", precision="bf16"),
    ]
    assert headline_of(workspace, "by=precision", rows) == (
        "Of 2 configurations that both have, bf16 has the better throughput in 1 and fp32 in 1: "
        "0.5 … 1.5 times that of fp32."
    )


def test_headline_of_many_configurations_is_a_geometric_mean(workspace: Workspace) -> None:
    rows = [row(n, 100.0, model=f"m{n}") for n in range(6)]
    rows += [row(10 + n, 200.0 + n, model=f"m{n}", precision="bf16") for n in range(6)]
    assert "geometric mean over 6 configurations that both have): bf16 is better." in headline_of(
        workspace, "by=precision", rows
    )


def test_headline_has_no_ratio_of_uncertified_frameworks(workspace: Workspace) -> None:
    rows = [row(1, 100.0), row(2, 200.0, framework="jax")]
    text = headline_of(workspace, "by=framework", rows)
    assert text.startswith(
        "No verdict on pytorch against jax: the only common configuration is not certified"
    )


def test_headline_of_different_work_is_the_best_result(workspace: Workspace) -> None:
    rows = [row(1, 100.0), row(2, 200.0, model="other")]
    assert headline_of(workspace, "", rows) == (
        "The best throughput is 200 images/s (198 … 202): other, training, pytorch, eager, fp32."
    )


def test_headline_of_no_results_says_so(workspace: Workspace) -> None:
    assert headline_of(workspace, "", [{"throughput": None}]) == "No results match this query."


@pytest.mark.parametrize(
    ("query", "name"),
    [("by=model,mode", "mode"), ("x=precision", "precision"), ("x=devices", ""), ("x=session", "")],
)
def test_compared_dimension_says_how_not_what(query: str, name: str) -> None:
    assert compared_dimension(from_url(query)) == name


def test_headline_of_the_best_result_names_its_conditions(workspace: Workspace) -> None:
    rows = [row(1, 34_050.0)]
    text = headline_of(workspace, "phase=training&batch=1&scaling=weak", rows)
    assert text.startswith("Of results with training, the best throughput is 34,050 ")


def test_headline_without_intervals_says_so_and_leads_with_the_ratios(workspace: Workspace) -> None:
    no_ends = {"throughput_low": None, "throughput_high": None}
    rows = [row(n, 100.0 * n, model=f"m{n}", **no_ends) for n in (1, 2)]
    rows += [row(2 + n, 200.0 * n * n, model=f"m{n}", precision="int8", **no_ends) for n in (1, 2)]
    assert headline_of(workspace, "by=precision", rows) == (
        "Throughput of int8 is 2 … 4 times that of fp32 in 2 configurations that both have: "
        "no difference is shown (no interval: too few processes)."
    )


def test_headline_says_why_some_pairs_are_undecided(workspace: Workspace) -> None:
    rows = [row(n, 100.0, model=f"m{n}") for n in (1, 2)]
    rows.append(row(3, 150.0, model="m1", precision="bf16"))
    rows.append(row(4, 100.0, model="m2", precision="bf16"))
    text = headline_of(workspace, "by=precision", rows)
    assert "in 1 and fp32 in 0, 1 are undecided (the interval contains 1)" in text
