"""How often `drift` and `level_shift` are raised: on quiet runs, and on runs that do change.

Runs are sets of processes, simulated or replayed from recorded steps. 5 % must not be exceeded by
all noisy flags together, so these two may take 4 %; with 100 runs, chance allows 7."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from factories import make_attempt
from steptime.analysis.flags import timing
from steptime.analysis.process import Process, measured_processes
from steptime.core.protocol import Protocol
from steptime.engine.warmup import find_cut

pytestmark = pytest.mark.slow

Shape = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
PROCESSES = 8
STEPS = 150
LONGER = 300
RUNS = 100
MOST_FALSE = 7


def autoregressive(correlation: float, deviation: float, slow_steps: float = 0.0) -> Shape:
    """With a share of steps that last two to five times as long."""

    def make(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
        values = rng.standard_normal(size)
        for i in range(1, size[1]):
            shock = np.sqrt(1 - correlation**2) * values[:, i]
            values[:, i] = correlation * values[:, i - 1] + shock
        slow = np.where(rng.random(size) < slow_steps, rng.uniform(2, 5, size), 1.0)
        return np.exp(deviation * values) * slow

    return make


NOISES: dict[str, Shape] = {
    "independent": autoregressive(0.0, 0.02),
    "AR 0.3": autoregressive(0.3, 0.02),
    "AR 0.6 with slow steps": autoregressive(0.6, 0.03, 0.02),
    "AR 0.8 with slow steps": autoregressive(0.8, 0.05, 0.05),
    "heavy tails": lambda rng, size: np.exp(0.02 * rng.standard_t(3, size)),
    "two modes": lambda rng, size: (
        np.where(rng.random(size) < 0.3, 1.2, 1.0) * np.exp(0.01 * rng.standard_normal(size))
    ),
}
# Under this noise eight processes do not show a change of 2 to 3 %: METHOD.md says so.
LOUD = "AR 0.8 with slow steps"


def make_processes(
    times: np.ndarray | list[np.ndarray], cuts: list[int] | None = None
) -> list[Process]:
    attempts = []
    for number, steps in enumerate(times):
        cut = cuts[number] if cuts else 0
        times_ns = np.rint(1e7 * steps).astype(int)
        attempts.append(make_attempt(times_ns, cut=cut, blocks=20, process=number))
    return list(measured_processes(attempts))


def is_flagged(processes: list[Process]) -> bool:
    return timing.drifts(processes) is not None or timing.level_shifts(processes) is not None


def flagged_runs(
    noise: Shape, change: Shape, runs: int = RUNS, size: tuple[int, int] = (PROCESSES, STEPS)
) -> int:
    rng = np.random.default_rng(16)
    return sum(
        is_flagged(make_processes(noise(rng, size) * change(rng, size))) for _ in range(runs)
    )


def no_change(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return np.ones(size)


def ramp(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """2 % from the first third to the last."""
    return np.broadcast_to(np.linspace(1, 1.03, size[1]), size)


def step(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """3 %, anywhere in the middle half of each process."""
    positions = rng.integers(size[1] // 4, 3 * size[1] // 4, (size[0], 1))
    return np.where(np.arange(size[1]) < positions, 1.0, 1.03)


@pytest.mark.parametrize("noise", NOISES)
def test_drift_and_level_shift_are_rare_on_quiet_runs(noise: str) -> None:
    assert flagged_runs(NOISES[noise], no_change) <= MOST_FALSE


@pytest.mark.parametrize("processes", [1, 3, 20])
def test_drift_and_level_shift_are_rare_for_any_number_of_processes(processes: int) -> None:
    noise = NOISES["AR 0.6 with slow steps"]
    assert flagged_runs(noise, no_change, size=(processes, STEPS)) <= MOST_FALSE


def test_drift_and_level_shift_would_be_frequent_if_steps_were_taken_as_independent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "memory", lambda courses: 0.0)
    assert flagged_runs(NOISES[LOUD], no_change) > 50


@pytest.mark.parametrize("name", ["cnn_train_t1_dt_us_x10", "mlp_infer_t1_dt_us_x10"])
def test_drift_and_level_shift_are_rare_on_recorded_steps_in_random_order(
    bank: Callable[[str], dict[str, np.ndarray]], name: str
) -> None:
    """Runs of ten steps are shuffled: their noise stays, what changed along a process does not."""
    recorded = bank("bank_loud")[name].astype(float)
    rng = np.random.default_rng(16)
    flagged = 0
    for _ in range(RUNS):
        chosen = rng.choice(len(recorded), PROCESSES, replace=False)
        times = []
        for steps in recorded[chosen, :400]:
            times.append(rng.permutation(steps.reshape(-1, 10)).ravel() / 1e4)
        flagged += is_flagged(make_processes(times))
    assert flagged <= MOST_FALSE


def test_drift_and_level_shift_are_rare_on_recorded_steps_of_an_immune_program(
    bank: Callable[[str], dict[str, np.ndarray]],
) -> None:
    """64 µs steps in the recorded order: their median is immune to the loud machine."""
    recorded = bank("bank_loud")["mlp_infer_t1_dt_us_x10"][:, 500:] / 1e4
    rng = np.random.default_rng(16)
    runs = [rng.choice(len(recorded), PROCESSES, replace=False) for _ in range(RUNS)]
    assert sum(is_flagged(make_processes(recorded[chosen])) for chosen in runs) <= MOST_FALSE


@pytest.mark.parametrize("change", [ramp, step])
@pytest.mark.parametrize("noise", [name for name in NOISES if name != LOUD])
def test_drift_and_level_shift_detect_small_changes(noise: str, change: Shape) -> None:
    assert flagged_runs(NOISES[noise], change, runs=40, size=(PROCESSES, LONGER)) >= 38


INDEX = np.arange(300)
# Those that the warm-up rule removes, and those that last as long as the process or come late.
TRANSIENTS = {
    "slow first step": np.where(INDEX == 0, 50.0, 1.0),
    "short decay": 1 + np.exp(-INDEX / 5),
    "long decay": 1 + 0.5 * np.exp(-INDEX / 30),
    "tier change": np.where(INDEX < 60, 1.2, 1.0),
    "full prefetch queue": np.where(INDEX < 40, 0.7, 1.0),
    "three compilations": np.where(np.isin(INDEX, (2, 6, 11)), 15.0, 1.0),
    "none": np.ones(300),
    "ramp of 5 %": 1 + 0.05 * np.exp(-INDEX / 300),
    "ramp of 10 %": 1 + 0.1 * np.exp(-INDEX / 150),
    "slow ramp of 10 %": 1 + 0.1 * np.exp(-INDEX / 600),
    "tier change of 3 % at 60 %": np.where(INDEX < 180, 1.03, 1.0),
    "tier change of 5 % at 70 %": np.where(INDEX < 210, 1.05, 1.0),
    "tier change of 5 % at 85 %": np.where(INDEX < 255, 1.05, 1.0),
    "slower from 60 % on": np.where(INDEX < 180, 1.0, 1.05),
}


def is_true_or_flagged(noise: Shape, transient: np.ndarray, rng: np.random.Generator) -> bool:
    times = noise(rng, (PROCESSES, len(transient))) * transient
    cuts = [find_cut(1e7 * steps, Protocol()) for steps in times]
    left = [abs(transient[cut.cut :].mean() / transient[-1] - 1) for cut in cuts]
    if np.median(left) <= 0.01 or not all(cut.settled for cut in cuts):
        return True
    return is_flagged(make_processes(list(times), [cut.cut for cut in cuts]))


@pytest.mark.parametrize("noise", ["independent", "AR 0.6 with slow steps"])
def test_transients_leave_at_most_1_percent_or_are_flagged(noise: str) -> None:
    rng = np.random.default_rng(16)
    passed = {}
    for name, shape in TRANSIENTS.items():
        passed[name] = np.mean([is_true_or_flagged(NOISES[noise], shape, rng) for _ in range(20)])
    assert np.mean(list(passed.values())) >= 0.95 and min(passed.values()) >= 0.8, passed


def test_transients_would_bias_results_without_these_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "drifts", lambda processes: None)
    monkeypatch.setattr(timing, "level_shifts", lambda processes: None)
    rng = np.random.default_rng(16)
    late = TRANSIENTS["tier change of 5 % at 85 %"]
    assert not any(is_true_or_flagged(NOISES["independent"], late, rng) for _ in range(5))
