from __future__ import annotations

import numpy as np
import pytest

from steptime.core.protocol import Protocol
from steptime.engine.warmup import find_cut, move_past_compilations

STEPS, RUNS = 300, 200
INDEX = np.arange(STEPS)
TRANSIENTS = {
    "slow first step": np.where(INDEX == 0, 50.0, 1.0),
    "short decay": 1 + np.exp(-INDEX / 5),
    "long decay": 1 + 0.5 * np.exp(-INDEX / 30),
    "tier change": np.where(INDEX < 60, 1.2, 1.0),
    "full prefetch queue": np.where(INDEX < 40, 0.7, 1.0),
    "three compilations": np.where(np.isin(INDEX, (2, 6, 11)), 15.0, 1.0),
    "none": np.ones(STEPS),
}
NOISES = {"light": (0.0, 0.02, 0.0), "middle": (0.6, 0.03, 0.02), "heavy": (0.8, 0.05, 0.05)}
BIAS = {"light": 0.003, "middle": 0.006, "heavy": 0.01}


def noise(generator: np.random.Generator, kind: str) -> np.ndarray:
    """First-order autoregressive, with a share of steps that last two to five times as long."""
    correlation, deviation, outliers = NOISES[kind]
    shocks = generator.normal(0, deviation * np.sqrt(1 - correlation**2), STEPS)
    values = np.empty(STEPS)
    values[0] = generator.normal(0, deviation)
    for index in range(1, STEPS):
        values[index] = correlation * values[index - 1] + shocks[index]
    late = np.where(generator.random(STEPS) < outliers, generator.uniform(2, 5, STEPS), 1.0)
    return np.exp(values) * late


def cuts(transient: np.ndarray, kind: str) -> list[int]:
    generator = np.random.default_rng(7)
    return [find_cut(1e6 * transient * noise(generator, kind), Protocol()).cut for _ in range(RUNS)]


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("name", TRANSIENTS)
def test_find_cut_leaves_little_of_a_transient_in_the_mean(name, kind):
    left = [TRANSIENTS[name][cut:].mean() - 1 for cut in cuts(TRANSIENTS[name], kind)]
    assert abs(np.mean(left)) <= BIAS[kind]


@pytest.mark.parametrize("kind", NOISES)
def test_find_cut_keeps_a_run_without_transient(kind):
    assert 1 - np.mean(cuts(TRANSIENTS["none"], kind)) / STEPS >= 0.92


def test_fixed_cut_of_ten_steps_would_fail_the_bound():
    assert TRANSIENTS["long decay"][10:].mean() - 1 > 0.01


def test_find_cut_reports_a_ramp_as_not_settled(protocol):
    generator = np.random.default_rng(1)
    ramp = 1e6 * np.linspace(1, 3, 400) * noise(generator, "light").repeat(2)[:400]
    assert not find_cut(ramp, protocol).settled


def test_find_cut_sees_transient_without_noise(protocol):
    assert find_cut([2e6] * 30 + [1e6] * 270, protocol).cut == 30


def test_find_cut_removes_one_sample_of_equal_times(protocol):
    cut = find_cut([5.0] * 100, protocol)
    assert (cut.cut, cut.settled) == (1, True)


def test_find_cut_ignores_late_spikes(protocol):
    times = [1e6] * 300
    times[250] = 9e6
    assert find_cut(times, protocol).cut == 1


def test_find_cut_uses_only_spikes_for_few_samples(protocol):
    assert find_cut([9e6, 1e6, 1e6, 1e6], protocol).cut == 1
    assert find_cut([9e6, 9e6, 1e6, 1e6, 1e6, 1e6], protocol).cut == 2


def test_find_cut_starts_from_largest_earlier_cut():
    assert find_cut([1e6] * 300, Protocol(warmup_start=70)).cut == 70


def test_find_cut_keeps_second_half_if_start_is_beyond_the_run():
    assert find_cut([1e6] * 100, Protocol(warmup_start=900)).cut == 50


def test_find_cut_is_fast_for_a_million_samples(protocol):
    times = np.random.default_rng(3).normal(1e6, 1e4, 1_000_000)
    assert find_cut(times, protocol).settled


def test_move_past_compilations_moves_cut_after_compiling_block():
    assert move_past_compilations(5, [(10, 0), (10, 1), (10, 0)]) == (20, True)


def test_move_past_compilations_forgives_block_divided_by_cut():
    assert move_past_compilations(5, [(10, 3), (10, 0)]) == (10, False)


def test_move_past_compilations_ignores_blocks_before_the_cut():
    assert move_past_compilations(10, [(10, 3), (10, 0)]) == (10, False)
