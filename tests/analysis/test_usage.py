from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from factories import make_attempt
from steptime.analysis.usage import usage, usage_sentence, usage_series
from steptime.core.record import Attempt, Record

COLUMNS: dict[str, list[Any]] = {
    "seconds": [0.0, 1.0, 2.0, 3.0],
    "own_cpu_seconds": [0.1, 0.1, 0.1, 0.1],
    "cpu_seconds": [0.0, 5.0, 7.0, 9.0],
    "memory_bytes": [1 << 20, 9 << 20, 2 << 20, 3 << 20],
    "disk_read_bytes": [0, 0, 1 << 20, 4 << 20],
    "gpu0.power_w": [100.0, 200.0, 300.0, 400.0],
    "gpu0.utilisation": [0.0, 0.5, 0.5, 1.0],
    "gpu0.reasons": [0, 1, 4, 4],
}
Make = Callable[..., Attempt]


@pytest.fixture
def watched() -> Callable[..., Attempt]:
    """Its steps run from second 1.5 to second 3 of the monitor's own clock."""

    def make(columns: dict[str, list[Any]] | None = None, **told: Any) -> Attempt:
        columns = COLUMNS if columns is None else columns
        monitor = {"first_ns": -1_500_000_000, "cost": {"share": 0.004}, "columns": columns, **told}
        return make_attempt([150_000_000] * 10, findings={"monitor": monitor})

    return make


def test_usage_series_turns_counters_into_rates(watched: Make) -> None:
    found = usage_series(watched())
    assert found["cpus"] == [(1.0, 5.0), (2.0, 2.0), (3.0, 2.0)] and found["memory_bytes"][1] == (
        1.0,
        9 << 20,
    )


def test_usage_covers_only_the_timed_steps(watched: Make) -> None:
    found = usage(watched())
    assert found is not None and found["cpus"] == {"mean": 2.0, "most": 2.0}
    assert found["memory_bytes"]["most"] == 3 << 20 and found["gpu0.power_w"]["mean"] == 350.0


def test_usage_combines_all_throttle_reasons(watched: Make) -> None:
    assert usage(watched(first_ns=10**12))["gpu0.reasons"] == {"any": 5}  # type: ignore[index]


def test_usage_is_none_without_a_monitor() -> None:
    attempt = make_attempt([1] * 20)
    assert (
        usage(attempt) is None
        and usage_sentence(Record(attempts=(attempt,))) == ""
        and usage_series(attempt) == {}
    )


def test_usage_series_skips_missing_values(watched: Make) -> None:
    columns = {"seconds": [0.0, 1.0, 2.0, 3.0], "memory_bytes": [1, None, 3, None]}
    assert usage_series(watched(columns))["memory_bytes"] == [(0.0, 1), (2.0, 3)]


def test_usage_sentence_reports_usage_and_monitor_cost(watched: Make) -> None:
    text = usage_sentence(Record(attempts=(watched(),)))
    assert text.startswith("2 CPUs, 3 MiB at most, 2 MiB/s read from disk, gpu0 75 % busy, 350 W")
    assert text.endswith("the monitor itself 0.4 % of a CPU")


def test_usage_sentence_reports_a_monitor_problem(watched: Make) -> None:
    assert usage_sentence(Record(attempts=(watched({}, problem="It died."),))) == "It died."


@pytest.mark.parametrize(
    ("changes", "apart", "words"),
    [
        (
            {"devices": 4, "nodes": 2, "exchange": "allreduce"},
            [None, 2, 2, 2],
            "2 of 4 ranks only, those on n1",
        ),
        (
            {"devices": 4, "nodes": 2, "exchange": "allreduce"},
            None,
            "of 4 ranks at most those on n1",
        ),
        ({"devices": 2, "nodes": 2, "exchange": "allreduce"}, [None, 2, 2, 2], ""),
        ({"devices": 2, "exchange": "allreduce"}, None, ""),
        ({"devices": 4, "nodes": 2}, None, ""),
        ({"environment": {"container": {"kind": "podman"}}}, None, "podman's own process only"),
        ({"environment": {"container": {"kind": "podman"}}}, [1, 1, 1, 1], ""),
        ({"environment": {"container": {"kind": "apptainer"}}}, None, ""),
        ({}, None, ""),
    ],
)
def test_unseen_processes_are_reported(changes: Any, apart: Any, words: str) -> None:
    columns = {**COLUMNS, **({"apart": apart} if apart else {})}
    seen = {"first_ns": 0, "cost": {"share": 0.004}, "node": "n1", "columns": columns}
    attempt = make_attempt([150_000_000] * 10, findings={"monitor": seen}, **changes)
    found = usage(attempt)
    assert (
        found is not None
        and ("partial" in found) == bool(words)
        and words in found.get("partial", "")
    )
    assert words in usage_sentence(Record(attempts=(attempt,)))
