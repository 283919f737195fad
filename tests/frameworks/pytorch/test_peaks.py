"""Measured peaks of products and copies."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    from steptime.frameworks.pytorch import peaks

    monkeypatch.setattr(peaks, "CPU_SHAPES", [(64, 32, 16), (128, 128, 128)])
    monkeypatch.setattr(peaks, "CPU_COPIES", (2**20,))
    return peaks


def test_measure_peaks_gives_rates_with_their_shapes(small: Any) -> None:
    peaks = small.measure_peaks("cpu", 0.4)
    assert peaks.keys() == {"fp32", "fp64", "bf16", "copy"}
    for name, peak in peaks.items():
        unit = "bytes" if name == "copy" else "flops"
        assert peak[f"{unit}_per_second"] >= peak[f"median_{unit}_per_second"] > 0
        assert peak["shape"] and peak["n"] >= 3 and peak["inputs"] == "standard normal"


def test_products_count_two_flops_per_multiply_add(small: Any, torch: Any) -> None:
    trial = next(small._products("fp32", torch.device("cpu")))
    assert trial.amount == 2 * 64 * 32 * 16
    assert trial.run().shape == (64, 32)


def test_copies_count_bytes_read_and_written(small: Any, torch: Any) -> None:
    trial = next(small._copies(torch.device("cpu")))
    assert trial.amount == 2 * trial.run().numel() * 4


def test_best_returns_the_fastest_shape_and_repeats_it_most(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(small.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(small, "_time_burst", lambda trial, device: 1.0)
    monkeypatch.setattr(small, "_set_repeats", lambda trial, seconds: None)
    cpu = type("Device", (), {"type": "cpu"})()
    trials = [small.Trial((size,), float(size), lambda: None) for size in (1, 3, 2)]
    best = small._best(iter(trials), cpu, 40)
    assert best.shape == (3,)
    assert len(trials[0].rates) == 3 < len(best.rates)
