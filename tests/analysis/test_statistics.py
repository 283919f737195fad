from __future__ import annotations

import math
import statistics as plain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factories import make_attempt, make_times
from steptime.analysis import statistics
from steptime.analysis.process import measured_processes

TIMES = st.lists(st.integers(1, 10**10), min_size=1, max_size=60).map(lambda ns: np.array(ns) / 1e9)


def reference(times: np.ndarray, batch: float) -> tuple[float, float, float, float]:
    """The program of DL-Benchmarks-TensorFlow, line by line."""
    speeds = batch / times
    mean_time = np.mean(times)
    speed_uncertainty = np.std(speeds, ddof=0) / np.sqrt(float(len(speeds)))
    speed_jitter = 1.4826 * np.median(np.abs(speeds - np.median(speeds)))
    return mean_time, batch / mean_time, speed_uncertainty, speed_jitter


def four(times: Any, batch: float) -> tuple[float, float, float, float]:
    found = statistics.speed_numbers(np.array(times, dtype=float), batch)
    return found.mean_time_seconds, found.mean_speed, found.speed_uncertainty, found.speed_jitter


def test_speed_numbers_equal_the_reference_for_a_thousand_vectors() -> None:
    rng = np.random.default_rng(0)
    for _ in range(1000):
        times, batch = rng.lognormal(-5, 1, rng.integers(1, 500)), int(rng.integers(1, 512))
        assert four(times, batch) == reference(times, batch)


@settings(max_examples=100, deadline=None)
@given(TIMES, st.integers(1, 512))
def test_speed_numbers_equal_the_reference_for_any_times(times: np.ndarray, batch: int) -> None:
    assert four(times, batch) == reference(times, batch)


@settings(max_examples=100, deadline=None)
@given(TIMES)
def test_speed_numbers_agree_with_the_standard_library(times: np.ndarray) -> None:
    speeds = [32 / t for t in times.tolist()]
    jitter = 1.4826 * plain.median(abs(s - plain.median(speeds)) for s in speeds)
    uncertainty = plain.pstdev(speeds) / math.sqrt(len(speeds))
    expected = (plain.fmean(times.tolist()), 32 / plain.fmean(times.tolist()), uncertainty, jitter)
    assert four(times, 32) == pytest.approx(expected, rel=1e-9, abs=1e-6 * max(speeds))


TABLE = [(0.005725434, 8732.961728), (0.009522174, 5250.901566), (0.010337743, 4836.64568)]


@pytest.mark.parametrize(("time", "speed"), TABLE)
def test_speed_numbers_reproduce_published_rows(time: float, speed: float) -> None:
    assert four([time], 50)[1] == pytest.approx(speed, rel=1e-6)


def test_speed_numbers_of_constant_steps_have_no_jitter_or_uncertainty() -> None:
    assert four([0.5] * 7, 8) == (0.5, 16.0, 0.0, 0.0)


def test_speed_jitter_of_four_values_matches_a_hand_calculation() -> None:
    # Speeds 1, 2, 4, 8: median 3, distances 2, 1, 1, 5, their median 1.5.
    assert four([1, 1 / 2, 1 / 4, 1 / 8], 1)[3] == pytest.approx(1.4826 * 1.5)


def test_speed_numbers_ignore_the_order_of_steps() -> None:
    times = make_times(1) / 1e9
    assert four(times[::-1], 32) == pytest.approx(four(times, 32), rel=1e-12)


def test_speed_uncertainty_shrinks_with_the_root_of_the_count() -> None:
    times = make_times(1) / 1e9
    assert four(np.tile(times, 16), 32)[2] == pytest.approx(four(times, 32)[2] / 4)


def test_percentiles_are_empty_for_grouped_samples() -> None:
    grouped = measured_processes([make_attempt(make_times(1), group=4)])
    assert statistics.percentiles(grouped, np.sort(grouped[0].step_seconds)) == ()


def test_percentile_without_enough_steps_has_no_value() -> None:
    parts = measured_processes([make_attempt(make_times(1, steps=200))])
    found = {p.percent: p for p in statistics.percentiles(parts, np.sort(parts[0].step_seconds))}
    assert found[95.0].seconds is not None and found[95.0].steps_beyond == 10
    assert found[99.0].seconds is None and found[99.0].steps_needed == 299


def test_outlier_share_uses_the_median_of_each_process() -> None:
    quick, slow = make_times(1, steps=100), make_times(2, steps=100, centre_ns=1e7)
    slow[7] *= 3
    assert (
        statistics.outlier_share(measured_processes([make_attempt(quick), make_attempt(slow)]))
        == 1 / 200
    )


def test_slowest_samples_carry_the_evidence_of_their_block() -> None:
    times = make_times(1, steps=100)
    times[42] *= 9
    found = statistics.slowest_samples(
        measured_processes([make_attempt(times, cut=10, gc_ns=5_000_000)])
    )
    assert len(found) == 5
    assert (found[0]["sample"], found[0]["step_seconds"]) == (42, times[42] / 1e9)
    assert found[0]["block"]["gc_seconds"] == 0.005


def test_statistics_exclude_warm_up() -> None:
    part = measured_processes([make_attempt([10**9] * 20 + [1000] * 80, cut=20, faults=5)])[0]
    assert (part.typical, part.mean) == (1e-6, pytest.approx(1e-6))
    assert statistics.per_step([part], "faults") == 5 / 10


def test_queue_share_skips_blocks_without_a_run_queue() -> None:
    told = make_attempt([1000] * 100, queue_ns=1000)
    silent = make_attempt([1000] * 100, queue_ns=None)
    assert statistics.queue_share(measured_processes([told, silent])) == 0.1
    assert statistics.queue_share(measured_processes([silent])) is None
