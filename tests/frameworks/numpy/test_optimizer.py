"""Two steps of every rule, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from steptime.frameworks.numpy.optimizer import RULES, Stepper
from steptime.graph import Optimizer, adam, adamw, momentum, sgd
from steptime.graph.optimizer import BY_NAME


def moved(rule: Optimizer, gradients: list[float]) -> float:
    """Where a weight that starts at 1 ends up."""
    weights, stepper = {"w": np.array(1.0)}, Stepper(rule)
    for gradient in gradients:
        stepper.update(weights, {"w": np.array(gradient)})
    return float(weights["w"])


def test_every_rule_is_here() -> None:
    assert {make().op for make in BY_NAME.values()} == set(RULES)


def test_plain_descent() -> None:
    assert moved(sgd(0.1), [2.0, -1.0]) == pytest.approx(1 - 0.1 * 2 + 0.1 * 1)


def test_momentum_remembers_the_slope_before() -> None:
    assert moved(momentum(0.1, 0.5), [2.0, -1.0]) == pytest.approx(
        1 - 0.1 * 2 - 0.1 * (0.5 * 2 - 1)
    )


def test_the_first_step_of_adam_is_its_rate() -> None:
    assert moved(adam(0.01), [123.0]) == pytest.approx(0.99)


def test_adam_divides_by_the_root_of_the_mean_square() -> None:
    first, second = (
        (0.9 * 0.1 * 2 + 0.1 * 4) / (1 - 0.9**2),
        (0.999 * 0.001 * 4 + 0.001 * 16) / (1 - 0.999**2),
    )
    expected = 1 - 0.01 * 2 / (2 + 1e-8) - 0.01 * first / (second**0.5 + 1e-8)
    assert moved(adam(0.01), [2.0, 4.0]) == pytest.approx(expected)


def test_coupled_decay_is_part_of_the_slope() -> None:
    second = 2.0 + 0.3 * (1 - 0.1 * 2.3)
    expected = 1 - 0.1 * 2.3 - 0.1 * (0.5 * 2.3 + second)
    assert moved(momentum(0.1, 0.5, weight_decay=0.3), [2.0, 2.0]) == pytest.approx(expected)


def test_decoupled_decay_leaves_the_slopes_memory_alone() -> None:
    assert moved(adamw(0.01, weight_decay=0.5), [123.0]) == pytest.approx(1 - 0.01 * 0.5 - 0.01)
