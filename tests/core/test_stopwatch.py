from __future__ import annotations

import pytest

from steptime.core.stopwatch import Stopwatch


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times: list[float] = []
    monkeypatch.setattr("time.perf_counter", lambda: times.pop(0))
    return times


def test_laps_of_one_name_add_up(times: list[float]) -> None:
    times += [10.0, 11.0, 13.0, 16.0]
    stopwatch = Stopwatch()
    stopwatch.lap("build")
    stopwatch.lap("steps")
    assert stopwatch.lap("build") == 3.0
    assert stopwatch.seconds == {"build": 4.0, "steps": 2.0}


def test_first_lap_begins_before_the_stopwatch(times: list[float]) -> None:
    times += [10.0, 11.0]
    stopwatch = Stopwatch(elapsed_seconds=4.0)
    stopwatch.lap("start")
    assert (stopwatch.began, stopwatch.seconds) == (6.0, {"start": 5.0})
