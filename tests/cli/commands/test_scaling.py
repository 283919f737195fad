"""`steptime scaling`: series from stored attempts, and one that is measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import Command, Snapshot
from factories import make_attempt, write_journal
from steptime.analysis.scaling.series import plan_cases
from steptime.core.case import Case
from steptime.core.protocol import preset
from steptime.run.session import plan_hash
from steptime.store.folder import FolderStore

FLAGS = ["scaling", "--workload", "mnist-mlp", "--set", "threads=1"]
# Milliseconds of a step without exchange.
TRUTH = {1: 100.0, 2: 104.0, 4: 106.0}
SHORT = {"least_steps": 5, "least_seconds": 0.02, "warmup_steps": 10, "warmup_seconds": 0.02}
TINY = {"bytes": 4, "seconds": [0.0024]}
KeepSeries = Callable[..., None]


@pytest.fixture
def keep_series(steptime: Command, tmp_path: Path) -> KeepSeries:
    """Stores eight processes of each case; an exchange takes 6 ms, of which 2 ms overlap."""

    def keep(counts: list[int], kind: str, cpus: int = 4, **more: Any) -> None:
        cases = list(plan_cases(Case(workload="mnist-mlp", threads=1), counts, (kind,)))
        store = FolderStore(tmp_path / "results")
        plan = plan_hash(cases, preset("standard"))
        for case in cases:
            exchanges = case.exchange == "allreduce"
            exchange = {
                "backend": "gloo",
                "bytes": 400_000,
                "seconds": [0.006],
                "bus_bytes_per_second": 400_000 / 0.006,
                **more,
            }
            facts = {"plan": plan, "findings": {"exchange": exchange} if exchanges else {}}
            milliseconds = TRUTH[case.devices] * case.batch_size / 32 + 4 * exchanges
            for process in range(8):
                times = np.full(60, milliseconds * 1e6 * (1 + 0.001 * (process - 3.5)))
                facts |= {"process": process, "environment": {"cpus": list(range(cpus))}}
                write_journal(store, make_attempt(times, **case.to_dict(), **facts))

    return keep


@pytest.mark.parametrize("columns", [80, 120])
def test_weak_series_as_text(
    columns: int, steptime: Command, keep_series: KeepSeries, snapshot: Snapshot
) -> None:
    keep_series([1, 2, 4], "weak", tiny=TINY)
    flags = ["--devices", "1,2,4", "--kind", "weak", "--predict", "8,64@100mbit"]
    done = steptime(*FLAGS, *flags, columns=columns)
    assert (done.returncode, done.stderr) == (0, "")
    snapshot(f"scaling-weak-{columns}", done.stdout)


def test_oversubscribed_points_are_marked_and_not_fitted(
    steptime: Command, keep_series: KeepSeries, snapshot: Snapshot
) -> None:
    keep_series([1, 2, 4], "strong", cpus=2)
    done = steptime(*FLAGS, "--devices", "1,2,4", "--kind", "strong")
    assert "Amdahl, fitted to 1, 2:" in done.stdout
    snapshot("scaling-oversubscribed", done.stdout)


def test_json_has_every_number_with_its_interval(
    steptime: Command, keep_series: KeepSeries
) -> None:
    keep_series([1, 2, 4], "weak")
    flags = ["--devices", "1,2,4", "--kind", "weak", "--json"]
    document = json.loads(steptime(*FLAGS, *flags).stdout)
    (series,) = document["series"]
    point = series["points"][1]
    assert document["failed"] == [] and [p["devices"] for p in series["points"]] == [1, 2, 4]
    assert point["exposed_seconds"]["value"] == pytest.approx(0.004, rel=0.01)
    assert point["overlapped_seconds"]["low"] < 0.002 < point["overlapped_seconds"]["high"]
    assert point["bus_bytes_per_second"]["value"] == pytest.approx(400_000 / 0.006)
    assert {law["name"] for law in series["laws"]} == {"communication", "Gustafson"}


def test_tables_fit_120_columns(steptime: Command, keep_series: KeepSeries) -> None:
    keep_series([1, 2, 4], "weak", tiny=TINY)
    lines = steptime(*FLAGS, "--devices", "1,2,4", "--kind", "weak").stdout.splitlines()
    speeds, exchange = (i for i, line in enumerate(lines) if line.startswith("devices "))
    tables = [*lines[speeds : speeds + 5], *lines[exchange : exchange + 4]]
    assert max(map(len, tables)) <= 120


@pytest.mark.live
def test_a_series_is_measured_once(steptime: Command) -> None:
    flags = [*FLAGS, "--devices", "1,2", "--kind", "weak", "--preset", "single"]
    for name, value in SHORT.items():
        flags += ["--set", f"protocol.{name}={value}"]
    done = steptime(*flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("2 devices (weak): ") and "exchange alone" in done.stdout
    document = json.loads(steptime(*flags, "--json").stdout)
    assert [point["devices"] for point in document["series"][0]["points"]] == [1, 2]
