from __future__ import annotations

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.run.slurm.progress import ProcessStatus, Progress, estimate_seconds_left


def test_estimate_seconds_left_follows_the_rate_of_results() -> None:
    assert estimate_seconds_left([100.0, 102.0, 104.0], 5) == 10.0
    assert estimate_seconds_left([100.0], 5) is None and estimate_seconds_left([], 0) == 0.0


def test_progress_is_over_if_nothing_waits_or_runs() -> None:
    case = Case(workload="mnist-mlp")
    places = [
        ProcessStatus(case=case, process=0, state="done"),
        ProcessStatus(case=case, process=1, state="failed", cause=Cause.TIMED_OUT),
    ]
    found = Progress(session="s", name="n", processes=places, seconds_left=0.0)
    assert found.is_over and found.causes == {"timed_out": 1} and found.to_dict()["done"] == 1
