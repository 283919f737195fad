"""Percentiles of inference: those that are known, and what the others need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from factories import make_attempt, make_times
from steptime.analysis.result import result
from steptime.cli.render import percentiles, results
from steptime.core.format import duration
from steptime.core.record import Record


def make_inference(steps: int, *, processes: int = 2, **changes: Any) -> Record:
    attempts = []
    for process in range(processes):
        times = make_times(process, steps=steps)
        changes = {"phase": "inference", **changes}
        attempts.append(make_attempt(times, process=process, id=f"0000000{process}", **changes))
    return Record(attempts=tuple(attempts))


def test_cells_are_the_quantiles_of_all_steps() -> None:
    record = make_inference(200)
    steps = np.sort(np.concatenate([make_times(0, steps=200), make_times(1, steps=200)]))
    cells = percentiles.cells(record.case, result(record))
    assert list(cells) == ["p50", "p90", "p99"]
    assert cells["p50"] == duration(float(np.percentile(steps, 50)) / 1e9)
    assert cells["p50"] < cells["p90"] < cells["p99"]


def test_explain_missing_counts_the_steps_that_p99_lacks() -> None:
    record = make_inference(100)
    outcome = result(record)
    assert percentiles.cells(record.case, outcome)["p99"] == ""
    assert percentiles.explain_missing(record.case, outcome) == (
        "p99 needs 299 steps, 99 more steps: --set protocol.least_steps=150"
    )


def test_explain_missing_is_silent_if_nothing_is_missing() -> None:
    record = make_inference(200)
    assert percentiles.explain_missing(record.case, result(record)) == ""


def test_explain_missing_says_that_samples_are_groups() -> None:
    record = make_inference(200, group=10)
    outcome = result(record)
    assert not any(percentiles.cells(record.case, outcome).values())
    assert "a sample is 10 of them" in percentiles.explain_missing(record.case, outcome)


def test_training_has_no_percentiles() -> None:
    record = make_inference(200, phase="training")
    assert percentiles.lines(record.case, result(record)) == {"percentiles": ""}


def test_show_states_percentiles_of_one_result(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([make_inference(100)])
    lines = capsys.readouterr().out.splitlines()
    line = next(line for line in lines if line.startswith("percentiles "))
    assert "p50 " in line and "p90 " in line and "p99 needs 299 steps" in line
    assert percentiles.CLOSED_LOOP in line
