"""DLIO's outputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]

SUMMARY = (
    '{"num_accelerators": 2, "hostname": "h", "metric": '
    '{"train_au_mean_percentage": %s, '
    '"train_throughput_mean_samples_per_second": 5.0, '
    '"train_io_mean_MB_per_second": 1139.7}, "epochs": 4}'
)


def test_summary_is_a_run(read: Read) -> None:
    run = read("summary.json", SUMMARY % 97.99).runs[0]
    assert run.metrics == pytest.approx(
        {
            "throughput": 5.0,
            "throughput_per_device": 2.5,
            "bandwidth": 1139.7e6,
            "utilisation": 0.9799,
        }
    )
    assert run.dimensions["phase"] == "ingest" and not run.quarantine


def test_utilisation_above_one_is_quarantined(read: Read) -> None:
    assert (
        read("summary.json", SUMMARY % 104.0).runs[0].quarantine
        == "utilisation is a share, and 1.04 is over 1"
    )


def test_times_of_steps_have_no_rows(read: Read) -> None:
    assert not read("0_output.json", '{"1": {"load": {"block1": [2.9, 0.01]}}}').runs
