"""Series in plain numbers, with what is to be said beside them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from steptime.analysis.scaling.draws import draw_typical
from steptime.analysis.scaling.report import Target, report
from steptime.analysis.scaling.series import Point, Series
from steptime.core.case import Case


def uncertain(milliseconds: float, *, n: int = 6, spread: float = 0.001) -> Any:
    rng = np.random.default_rng(int(milliseconds * 100))
    return draw_typical(1e-3 * milliseconds * np.exp(spread * rng.standard_normal(n)), rng)


def told(step: float, bare: float, alone: float, **changes: Any) -> dict[str, Any]:
    """Two devices against one that takes 100 ms."""
    n = changes.pop("n", 6)
    first = Point(
        devices=1, batch_size=8, step=uncertain(100), independent=uncertain(100), exchange=None
    )
    numbers = {
        "step": uncertain(step, n=n),
        "independent": uncertain(bare, n=n),
        "exchange": uncertain(alone, n=n),
    }
    second = Point(devices=2, batch_size=8, exchanged_bytes=1000, **numbers, **changes)
    return report(
        Series("weak", "allreduce", Case(workload="m"), (first, second)),
        [Target(8), Target(8, 1e6)],
    )


def notes(series: dict[str, Any]) -> list[str]:
    found: list[str] = series["points"][1]["notes"]
    return found


def test_report_has_no_notes_for_an_ordinary_point() -> None:
    assert notes(told(110, 102, 12)) == []


def test_report_notes_an_interval_that_holds_zero() -> None:
    assert notes(told(102.01, 102, 5)) == ["exposed may be nothing: the interval contains zero"]


def test_report_notes_a_step_that_pays_more_than_the_exchange() -> None:
    assert notes(told(130, 102, 5)) == ["a step pays more than the exchange alone takes"]


def test_report_notes_an_efficiency_above_one() -> None:
    series = told(95, 90, 8)
    assert series["points"][1]["efficiency"]["value"] > 1
    assert notes(series) == ["efficiency is above 100 %, beyond its interval"]


def test_report_marks_an_oversubscribed_point() -> None:
    series = told(210, 200, 12, oversubscribed="4 threads on 2 CPUs")
    assert notes(series) == ["oversubscribed: 4 threads on 2 CPUs"]
    assert all("too few numbers of devices" in law["no_fit"] for law in series["laws"])


def test_report_has_no_notes_without_intervals() -> None:
    series = told(102.01, 102, 5, n=2)
    assert notes(series) == [] and series["points"][1]["exposed_seconds"]["low"] is None


def test_report_predicts_for_the_targets() -> None:
    communication, gustafson = told(110, 102, 12)["laws"]
    asked = [
        (one["devices"], one["bandwidth_bytes_per_second"]) for one in communication["predictions"]
    ]
    assert asked == [(8, None), (8, 1e6)] and len(gustafson["predictions"]) == 1
    numbers = communication["predictions"][0]["speed_up"]
    assert numbers["low"] < numbers["value"] < numbers["high"] < 8


def test_report_shows_processes_that_are_far_apart_without_a_warning() -> None:
    """Three processes, one of them disturbed: draws of 2 degrees of freedom lie far out."""
    points = []
    for devices in (1, 2):
        numbers = {
            "step": uncertain(100 / devices, n=3, spread=2),
            "independent": uncertain(90 / devices, n=3, spread=2),
            "exchange": uncertain(10, n=3, spread=2) if devices > 1 else None,
        }
        points.append(Point(devices=devices, batch_size=64, exchanged_bytes=1000, **numbers))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        series = report(Series("strong", "allreduce", Case(workload="m"), tuple(points)))
    assert [point["step_seconds"]["value"] for point in series["points"]] == [
        points[0].step[0],
        points[1].step[0],
    ]
