"""What a wait costs the step behind it: there and back, and from records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from factories import make_attempt
from steptime.analysis.scaling.draws import estimate
from steptime.analysis.scaling.pause_cost import NO_COST, PauseCost, pause_cost

BARE = np.array([0.010, 0.011, 0.009])
COLD = PauseCost((0.0, 0.004, 0.064), (np.zeros(1), np.full(3, 0.1), np.full(3, 0.4)))


def of(milliseconds: float) -> np.ndarray:
    return np.full(3, milliseconds / 1e3)


@pytest.mark.parametrize(
    "wait, exposed",
    [(0, 0), (2, 2.5), (4, 5), (34, 36.5), (64, 68), (164, 168)],
    ids=lambda value: f"{value}ms",
)
def test_exposed_seconds_adds_the_cost_for_the_next_step(wait: float, exposed: float) -> None:
    assert COLD.exposed_seconds(of(wait), BARE)[0] == pytest.approx(exposed / 1e3)


@pytest.mark.parametrize("wait", [-3.0, 0.0, 0.1, 3.9, 4.1, 63.0, 500.0])
def test_wait_seconds_inverts_exposed_seconds(wait: float) -> None:
    assert COLD.wait_seconds(COLD.exposed_seconds(of(wait), BARE), BARE) == pytest.approx(of(wait))


def test_exposed_seconds_adds_nothing_below_zero() -> None:
    assert COLD.exposed_seconds(of(-1), BARE) == pytest.approx(of(-1))


def test_no_cost_exposes_the_wait_alone() -> None:
    assert NO_COST.exposed_seconds(of(7), BARE) == pytest.approx(of(7)) and NO_COST.wait_seconds(
        of(7), BARE
    ) == pytest.approx(of(7))


def test_wait_seconds_inverts_a_noisy_negative_cost() -> None:
    odd = PauseCost((0.0, 0.001), (np.zeros(1), np.full(3, -0.9)))
    assert odd.wait_seconds(odd.exposed_seconds(of(0.5), BARE), BARE) == pytest.approx(of(0.5))


def test_pause_cost_uses_typical_turns_and_has_an_interval() -> None:
    def told(longer: float) -> dict[str, Any]:
        turns = [[0.010, 0.010 * (1 + longer)], [0.020, 0.020 * (1 + longer)], [0.010, 0.1]]
        return {"pause_cost": {"pauses_seconds": [0.0, 0.016], "turns": turns}}

    attempts = [
        make_attempt(np.full(50, 1e7), findings=told(longer)) for longer in (0.2, 0.21, 0.22)
    ]
    found = pause_cost([*attempts, make_attempt(np.full(50, 1e7))], np.random.default_rng(1))
    assert found.pauses == (0.0, 0.016)
    share = estimate(found.longer[1])
    assert share.value == pytest.approx(0.21, rel=0.01)
    assert (
        share.low is not None
        and share.high is not None
        and 0.15 < share.low < 0.21 < share.high < 0.27
    )


def test_pause_cost_without_findings_is_none() -> None:
    assert pause_cost([make_attempt(np.full(50, 1e7))], np.random.default_rng(1)) is NO_COST
