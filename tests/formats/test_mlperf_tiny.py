"""MLPerf Tiny's table."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]


def test_row_is_a_run_with_the_energy_of_one_inference(read: Read) -> None:
    row = {
        "Benchmark": "ic",
        "Submitter": "Bosch",
        "median_throughput": 21.4,
        "median_energy_cost": 235.8,
        "accuracy_Top-1": 88.0,
        "SoC Name": "STM32",
        "version": "v1.1",
        "Division": "closed",
    }
    found = read("tiny.json", json.dumps([row, {"Benchmark": "ad", "median_throughput": ""}]))
    assert found.runs[0].metrics == pytest.approx(
        {"throughput": 21.4, "throughput_per_device": 21.4, "accuracy": 0.88, "energy": 235.8e-6}
    )
    assert (
        found.runs[0].dimensions["device"] == "STM32"
        and found.skipped[0].reason == "no throughput: ''"
    )
