"""One case alone: the printed interval must hold although its processes follow each other.

`benchmarks/interval_coverage.py` simulates and replays. It writes docs/results/coverage.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factories import make_attempt
from steptime.analysis import dependence, intervals
from steptime.analysis.autocorrelation import rank_lag_one

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import interval_coverage as coverage

LEAST = 0.92
SESSIONS = 300
# Less 1.3 standard errors of so many sessions; the page has more of them.
LEAST_SIMULATED = LEAST - 0.02
RECORDED = json.loads((ROOT / "tests/fixtures/successive-processes.json").read_text())["series"]
CASES = [series["case"] for series in RECORDED]


def attempts(numbers: list[int | None]) -> list[Any]:
    made = []
    for number in numbers:
        environment = {} if number is None else {"session_process": number}
        made.append(make_attempt([1000] * 40, environment=environment))
    return made


def test_most_correlation_is_that_of_successive_processes_for_a_case_alone() -> None:
    assert dependence.most_correlation(attempts([0, 1, 2])) == pytest.approx(0.8)
    assert dependence.most_correlation(attempts([None, None, None])) == pytest.approx(0.8)


def test_most_correlation_falls_with_the_processes_in_between() -> None:
    assert dependence.most_correlation(attempts([0, 2, 4])) == pytest.approx(0.64)
    assert dependence.most_correlation(attempts([0, 100, 200])) < 1e-9
    # At the end of a session a case may be left alone.
    assert dependence.most_correlation(attempts([0, 2, 3])) == pytest.approx((0.64 + 0.8) / 2)


def test_most_correlation_knows_processes_that_overtook_each_other() -> None:
    assert dependence.most_correlation(attempts([3, 1, 5])) == pytest.approx((0.64 + 0.4096) / 2)


def test_widening_is_largest_for_few_values() -> None:
    quiet = np.random.default_rng(1).standard_normal(400)
    assert dependence.widening(quiet[:8]) == pytest.approx(3.0)
    assert 1.0 <= dependence.widening(quiet) < 1.3
    assert dependence.widening(quiet[:8], most=0.0) == 1.0


def test_widening_follows_the_correlation_seen() -> None:
    rng = np.random.default_rng(2)
    series = coverage.correlated(0.5)(rng, 1, 4000)[0]
    expected = ((1 + 0.5) / (1 - 0.5)) ** 0.5
    assert dependence.widening(series) == pytest.approx(expected, rel=0.15)


def test_typical_interval_is_the_signed_rank_interval_if_not_widened() -> None:
    values = 1 + 0.01 * np.random.default_rng(3).standard_normal(9)
    plain = intervals.signed_rank(values, 0.035)
    narrow = dependence.typical_interval(values, 0.035, 1.0)
    assert plain is not None
    assert narrow is not None
    assert (narrow.low, narrow.high) == pytest.approx((plain.low, plain.high))


def test_typical_interval_of_loud_processes_stays_above_zero() -> None:
    values = np.array([1.0, 9.0, 1.5, 12.0, 2.0, 3.0, 1.2, 8.0])
    wide = dependence.typical_interval(values, 0.035, 3.0)
    assert wide is not None
    assert 0 < wide.low < wide.centre < wide.high


def test_typical_interval_is_none_for_five_values() -> None:
    assert dependence.typical_interval(np.arange(1.0, 6.0), 0.035, 3.0) is None


def test_rank_lag_one_of_equal_values_is_zero() -> None:
    assert rank_lag_one(np.ones(8)) == 0.0
    assert rank_lag_one(np.arange(8.0)) == pytest.approx(1 - 7 / 42 / 2)


@pytest.mark.slow
@pytest.mark.parametrize("spread", coverage.SPREADS)
@pytest.mark.parametrize("name", coverage.UNORDERED | coverage.ORDERED)
def test_interval_of_a_case_alone_holds_or_is_flagged(name: str, spread: float) -> None:
    assert coverage.simulate(name, spread, sessions=SESSIONS).held_or_flagged >= LEAST_SIMULATED


@pytest.mark.slow
@pytest.mark.parametrize("spread", coverage.SPREADS)
@pytest.mark.parametrize("name", coverage.UNORDERED)
def test_interval_of_interleaved_processes_holds_or_is_flagged(name: str, spread: float) -> None:
    found = coverage.simulate(name, spread, cases=coverage.MANY_CASES, sessions=SESSIONS)
    assert found.held_or_flagged >= LEAST_SIMULATED


@pytest.mark.slow
@pytest.mark.parametrize("spread", coverage.SPREADS)
def test_interval_of_one_of_two_cases_holds_or_is_flagged(spread: float) -> None:
    found = coverage.simulate("AR(1) 0.8", spread, cases=2, sessions=SESSIONS)
    assert found.held_or_flagged >= LEAST_SIMULATED


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AR(1) 0.5", "AR(1) 0.8", "drifting by 3 sd"])
def test_interval_of_independent_processes_fails_for_successive_ones(name: str) -> None:
    """The negative control: what a case alone was given before."""
    assert coverage.simulate_naive(name, 0.01, sessions=SESSIONS) < 0.88


@pytest.mark.slow
@pytest.mark.parametrize("cases", [1, coverage.MANY_CASES])
@pytest.mark.parametrize("spread", coverage.SPREADS)
def test_quiet_sessions_are_rarely_flagged(spread: float, cases: int) -> None:
    found = coverage.simulate("independent", spread, cases=cases, sessions=2 * SESSIONS)
    assert found.flagged <= 0.05


@pytest.mark.parametrize("case", CASES)
def test_interval_holds_in_windows_of_recorded_processes(case: str) -> None:
    seconds = coverage.recorded_series()[case]
    assert len(seconds) >= 30
    for sizes in coverage.size_classes(len(seconds)):
        assert coverage.replay(seconds, sizes).held >= LEAST


def test_interval_of_independent_processes_fails_in_recorded_windows() -> None:
    held = []
    for seconds in coverage.recorded_series().values():
        held.append(coverage.replay(seconds, [6], cases=coverage.MANY_CASES).held)
    assert min(held) < 0.88


@pytest.mark.parametrize("name", ["cnn_train_t1", "mlp_infer_t1"])
def test_interval_holds_in_windows_of_a_loud_bank(name: str, bank: Callable[..., Any]) -> None:
    steps = bank("bank_loud")[f"{name}_dt_us_x10"][:, 40:]
    seconds = np.median(steps, axis=1) * 1e-7
    for sizes in coverage.size_classes(len(seconds)):
        assert coverage.replay(seconds, sizes).held >= LEAST


def test_interval_of_independent_processes_fails_in_a_loud_bank(bank: Callable[..., Any]) -> None:
    seconds = np.median(bank("bank_loud")["cnn_train_t1_dt_us_x10"][:, 40:], axis=1) * 1e-7
    assert coverage.replay(seconds, range(6, 16), cases=coverage.MANY_CASES).held < 0.85


@pytest.mark.slow
def test_students_interval_of_the_mean_fails_for_disturbed_processes() -> None:
    """Why the mean has no interval."""
    assert coverage.mean_coverage(coverage.disturbed, 8, SESSIONS) < 0.85
    assert coverage.mean_coverage(coverage.independent, 8, SESSIONS) >= LEAST
