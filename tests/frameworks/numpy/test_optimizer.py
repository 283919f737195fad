"""Two steps of every rule, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from steptime.frameworks.numpy.optimizer import RULES, Stepper
from steptime.graph import Optimizer, adam, adamw, momentum, sgd
from steptime.graph.optimizer import BY_NAME


def final_weight(rule: Optimizer, gradients: list[float]) -> float:
    """The final value of a weight that starts at 1."""
    weights, stepper = {"w": np.array(1.0)}, Stepper(rule)
    for gradient in gradients:
        stepper.update(weights, {"w": np.array(gradient)})
    return float(weights["w"])


def test_rules_cover_every_optimizer() -> None:
    assert {make().algorithm for make in BY_NAME.values()} == set(RULES)


def test_sgd_subtracts_rate_times_gradient() -> None:
    assert final_weight(sgd(0.1), [2.0, -1.0]) == pytest.approx(1 - 0.1 * 2 + 0.1 * 1)


def test_momentum_accumulates_gradients() -> None:
    assert final_weight(momentum(0.1, 0.5), [2.0, -1.0]) == pytest.approx(
        1 - 0.1 * 2 - 0.1 * (0.5 * 2 - 1)
    )


def test_adam_first_step_has_the_size_of_its_rate() -> None:
    assert final_weight(adam(0.01), [123.0]) == pytest.approx(0.99)


def test_adam_divides_by_the_root_of_the_mean_square() -> None:
    first, second = (
        (0.9 * 0.1 * 2 + 0.1 * 4) / (1 - 0.9**2),
        (0.999 * 0.001 * 4 + 0.001 * 16) / (1 - 0.999**2),
    )
    expected = 1 - 0.01 * 2 / (2 + 1e-8) - 0.01 * first / (second**0.5 + 1e-8)
    assert final_weight(adam(0.01), [2.0, 4.0]) == pytest.approx(expected)


def test_coupled_decay_is_added_to_the_gradient() -> None:
    second = 2.0 + 0.3 * (1 - 0.1 * 2.3)
    expected = 1 - 0.1 * 2.3 - 0.1 * (0.5 * 2.3 + second)
    assert final_weight(momentum(0.1, 0.5, weight_decay=0.3), [2.0, 2.0]) == pytest.approx(expected)


def test_decoupled_decay_does_not_enter_the_moments() -> None:
    assert final_weight(adamw(0.01, weight_decay=0.5), [123.0]) == pytest.approx(
        1 - 0.01 * 0.5 - 0.01
    )
