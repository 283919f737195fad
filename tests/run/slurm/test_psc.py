"""The matrix of PSC's benchmark as its users meet it: submit, look, collect."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from steptime.analysis.data_type import data_type

pytestmark = pytest.mark.live
FAST = {
    "block_seconds": 0.01,
    "least_steps": 5,
    "least_seconds": 0.1,
    "warmup_steps": 10,
    "warmup_seconds": 0.02,
    "warmup_most_seconds": 0.1,
}
"""Short, but with enough blocks: one that a busy machine disturbs must not spoil a result."""
MACHINE = Path(__file__).parents[3] / "docs" / "examples" / "psc-machine.toml"
DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> None:
    if not DATA.is_dir():
        pytest.skip("needs the real data sets in ../shared/data")
    monkeypatch.setenv("STEPTIME_DATA", str(DATA))


def command(desk: Any, *words: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "steptime", *words, "--json"],
        cwd=desk.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def _rows(desk: Any, pattern: str) -> list[dict[str, str]]:
    (path,) = (desk.path / "archive").glob(pattern)
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("data")
def test_campaign_runs_the_matrix_and_bundles_by_node(desk: Any) -> None:
    settings = [f"protocol.{name}={value}" for name, value in FAST.items()]
    settings += [
        "framework=calm",
        "exchange=independent",  # calm has no all-reduce
        "batch_size=1,2",  # so little work that doing none of it is believed
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    code, told = command(
        desk, "submit", "psc", "--machine", str(MACHINE), "--preset", "single", *words
    )
    assert (
        code == 0
        and told["submitted"] == 24
        and [array["tasks"] for array in told["arrays"]] == [1] * 6
    )
    code, collected = command(desk, "collect", "--wait", "--archive", "archive")
    assert code == 0 and collected["progress"]["done"] == len(collected["records"]) == 24
    assert Counter(Path(path).suffix for path in collected["archive"]) == {
        "": 24,
        ".csv": 1,
        ".svg": 4,
    }
    assert len(_rows(desk, "*:TF_PERFORMANCE_RESULTS.csv")) == 24
    types = {data_type(record) for record in desk.collect()}
    (scratch,) = (name for name in types if name.endswith("(scratch)"))
    (local,) = (name for name in types if name.endswith("(local)"))
    code, by_node = command(desk, "compare", f"data={scratch}", f"data={local}", "--by-node")
    # On a busy machine a disturbed process is set aside, and its partner is then unpaired.
    assert code == 0 and 10 <= by_node["pairs"] <= by_node["pairs"] + by_node["unpaired"] <= 12
    assert 2 <= len(by_node["nodes"]) <= 4
    attempts = {attempt.case: attempt for attempt in desk.store.attempts()}
    nodes: dict[tuple[str, int], set[str]] = {}
    for case, attempt in attempts.items():
        slurm, staged = attempt.environment["slurm"], attempt.findings["staging"]
        assert (
            slurm["SLURMD_NODENAME"].startswith(case.node_type) and staged["tier"] == case.staging
        )
        assert len(attempt.environment["CUDA_VISIBLE_DEVICES"].split(",")) == case.devices
        assert (
            staged["bytes"] > 0
            and attempt.findings["data"]["bytes_per_step"] > 0
            and attempt.measurement.starts["staging"] > 0
        )
        nodes.setdefault((case.node_type, case.devices), set()).add(slurm["SLURM_JOB_ID"])
    assert all(len(jobs) == 1 for jobs in nodes.values())
    code, again = command(
        desk, "submit", "psc", "--machine", str(MACHINE), "--preset", "single", *words
    )
    assert (code, again["submitted"], again["done"], again["campaign"]) == (
        0,
        0,
        24,
        told["campaign"],
    )
