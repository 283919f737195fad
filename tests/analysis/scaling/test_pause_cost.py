"""What a wait costs the step behind it: there and back, and from records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from steptime.analysis.scaling.draws import estimate
from steptime.analysis.scaling.pause_cost import NO_COST, PauseCost, pause_cost

BARE = np.array([0.010, 0.011, 0.009])
COLD = PauseCost((0.0, 0.004, 0.064), (np.zeros(1), np.full(3, 0.1), np.full(3, 0.4)))
Make = Callable[..., Any]


def of(milliseconds: float) -> np.ndarray:
    return np.full(3, milliseconds / 1e3)


@pytest.mark.parametrize(
    "wait, exposed",
    [(0, 0), (2, 2.5), (4, 5), (34, 36.5), (64, 68), (164, 168)],
    ids=lambda value: f"{value}ms",
)
def test_a_wait_costs_itself_and_a_share_of_the_step_behind_it(wait: float, exposed: float) -> None:
    assert COLD.exposed(of(wait), BARE)[0] == pytest.approx(exposed / 1e3)


@pytest.mark.parametrize("wait", [-3.0, 0.0, 0.1, 3.9, 4.1, 63.0, 500.0])
def test_what_is_exposed_leads_back_to_the_wait(wait: float) -> None:
    assert COLD.wait(COLD.exposed(of(wait), BARE), BARE) == pytest.approx(of(wait))


def test_below_zero_nothing_is_added() -> None:
    assert COLD.exposed(of(-1), BARE) == pytest.approx(of(-1))


def test_where_nothing_is_known_a_wait_is_all_that_is_exposed() -> None:
    assert NO_COST.exposed(of(7), BARE) == pytest.approx(of(7)) and NO_COST.wait(
        of(7), BARE
    ) == pytest.approx(of(7))


def test_noise_that_says_that_waiting_gains_more_than_it_takes_still_leads_back() -> None:
    odd = PauseCost((0.0, 0.001), (np.zeros(1), np.full(3, -0.9)))
    assert odd.wait(odd.exposed(of(0.5), BARE), BARE) == pytest.approx(of(0.5))


def test_a_process_tells_its_typical_turn_and_all_of_them_an_interval(attempt_of: Make) -> None:
    def told(longer: float) -> dict[str, Any]:
        turns = [[0.010, 0.010 * (1 + longer)], [0.020, 0.020 * (1 + longer)], [0.010, 0.1]]
        return {"pause_cost": {"pauses_seconds": [0.0, 0.016], "turns": turns}}

    attempts = [attempt_of(np.full(50, 1e7), findings=told(longer)) for longer in (0.2, 0.21, 0.22)]
    found = pause_cost([*attempts, attempt_of(np.full(50, 1e7))], np.random.default_rng(1))
    assert found.pauses == (0.0, 0.016)
    share = estimate(found.longer[1])
    assert share.value == pytest.approx(0.21, rel=0.01)
    assert (
        share.low is not None
        and share.high is not None
        and 0.15 < share.low < 0.21 < share.high < 0.27
    )


def test_records_that_tell_nothing_cost_nothing(attempt_of: Make) -> None:
    assert pause_cost([attempt_of(np.full(50, 1e7))], np.random.default_rng(1)) is NO_COST
