from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[report]'")

from steptime.charts.monitor import monitor_view
from steptime.core.record import Record


def seen(columns: dict[str, list[Any]], **told: Any) -> dict[str, Any]:
    return {"monitor": {"first_ns": 0, "cost": {"share": 0.01}, "columns": columns, **told}}


def test_monitor_view_has_a_chart_and_a_row_for_each_quantity(
    record_of: Callable[..., Record],
) -> None:
    columns = {
        "seconds": [0.0, 1.0, 2.0],
        "cpu_seconds": [0.0, 1.0, 3.0],
        "memory_bytes": [1 << 20, 3 << 20, 2 << 20],
    }
    found = monitor_view(
        record_of(
            processes=2, findings=seen({**columns, "disk_read_bytes": [0, 0, 0], "odd": [1, 1, 1]})
        )
    )
    assert found is not None and [row["label"] for row in found["rows"]] == [
        "CPUs in use",
        "Memory, MiB",
    ]
    assert found["rows"][1] == {"label": "Memory, MiB", "min": 1.0, "mean": 2.0, "max": 3.0}
    assert {value["process"] for value in found["spec"]["data"]["values"]} == {"0", "1"} and found[
        "share"
    ] == 0.01


def test_monitor_view_separates_boards(record_of: Callable[..., Record]) -> None:
    columns = {
        "seconds": [0.0, 1.0],
        "gpu0.power_w": [100.0, 200.0],
        "gpu1.power_w": [50.0, 60.0],
        "gpu0.odd": [1, 1],
    }
    found = monitor_view(
        record_of(processes=1, findings=seen(columns, absent=["gpu0.utilisation"]))
    )
    assert found is not None and [row["label"] for row in found["rows"]] == [
        "gpu0 power, W",
        "gpu1 power, W",
    ]
    assert found["absent"] == ["gpu0.utilisation"]


def test_monitor_view_thins_a_long_series(record_of: Callable[..., Record]) -> None:
    columns = {"seconds": [float(n) for n in range(2000)], "memory_bytes": [1 << 20] * 2000}
    found = monitor_view(record_of(processes=1, findings=seen(columns)))
    assert found is not None and len(found["spec"]["data"]["values"]) <= 200


def test_monitor_view_is_none_without_a_monitor(record_of: Callable[..., Record]) -> None:
    assert monitor_view(record_of(processes=1)) is None


def test_monitor_view_reports_missing_ranks_once(record_of: Callable[..., Record]) -> None:
    told = seen({"seconds": [0.0, 1.0], "memory_bytes": [1, 1]}, node="n1")
    found = monitor_view(
        record_of(processes=2, findings=told, devices=2, nodes=2, exchange="allreduce")
    )
    assert found is not None and found["partial"] == ["monitored: of 2 ranks at most those on n1"]
