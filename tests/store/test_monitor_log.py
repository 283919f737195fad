from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.measurement import Measurement
from steptime.core.record import Failure
from steptime.store import monitor_log
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal

HEAD = {"interval_seconds": 0.5, "first_ns": 7, "absent": []}


def written(journal: Path, rows: list[dict[str, Any]], rest: str = "") -> Path:
    text = "".join(json.dumps(line) + "\n" for line in (HEAD, *rows))
    monitor_log.log_path(journal).write_text(text + rest)
    return journal


def row(seconds: float, **values: float) -> dict[str, float]:
    return {"seconds": seconds, "own_cpu_seconds": 0.1 + seconds / 100, **values}


def test_series_is_none_without_a_monitor(tmp_path: Path) -> None:
    assert monitor_log.read_series(tmp_path / "a.jsonl") is None


def test_series_has_columns_and_the_cost_of_the_monitor(tmp_path: Path) -> None:
    found = monitor_log.read_series(
        written(tmp_path / "a.jsonl", [row(0.0, cpu_seconds=1), row(2.0)])
    )
    assert (
        found is not None
        and found["columns"]["cpu_seconds"] == [1, None]
        and found["first_ns"] == 7
    )
    assert (
        round(found["cost"]["share"], 6) == 0.01 and round(found["cost"]["cpu_seconds"], 6) == 0.12
    )


def test_series_skips_a_torn_last_line(tmp_path: Path) -> None:
    found = monitor_log.read_series(
        written(tmp_path / "a.jsonl", [row(0.0), row(1.0)], rest='{"seconds": 1.5, "cpu')
    )
    assert found is not None and found["columns"]["seconds"] == [0.0, 1.0]


def test_series_says_why_a_monitor_did_not_start(tmp_path: Path) -> None:
    monitor_log.log_path(tmp_path / "a.jsonl").write_text(
        "Traceback\nModuleNotFoundError: no steptime"
    )
    found = monitor_log.read_series(tmp_path / "a.jsonl")
    assert found is not None and found["problem"].endswith("ModuleNotFoundError: no steptime")
    monitor_log.log_path(tmp_path / "a.jsonl").write_bytes(b"\xff")
    assert monitor_log.read_series(tmp_path / "a.jsonl") is not None


def test_long_series_is_thinned_and_keeps_its_ends(tmp_path: Path) -> None:
    count = 5 * monitor_log.MOST_ROWS + 3
    found = monitor_log.read_series(
        written(tmp_path / "a.jsonl", [row(float(n)) for n in range(count)])
    )
    assert found is not None
    times = found["columns"]["seconds"]
    assert len(times) <= monitor_log.MOST_ROWS + 1 and (times[0], times[-1]) == (0.0, count - 1)


@pytest.mark.parametrize("failure", [None, Failure(cause=Cause.OUT_OF_MEMORY, reason="too much")])
def test_series_is_in_the_end_line_and_survives_compaction(
    store: FolderStore,
    make_job: Callable[..., Job],
    measurement: Measurement,
    failure: Failure | None,
) -> None:
    job = make_job()
    path = written(store.journal(job.id), [row(0.0, memory_bytes=5)])
    with Journal(path) as journal:
        journal.begin(job)
        journal.write_failure(failure) if failure else journal.write_measurement(
            measurement, {"more": 1}
        )
    monitor_log.log_path(path).unlink()
    before = store.attempts()
    compact(store)
    (attempt,) = store.attempts()
    assert attempt.findings["monitor"]["columns"]["memory_bytes"] == [5] and [attempt] == before
