"""Three steps of every optimiser against its formula in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.errors import Unsupported
from steptime.graph import Optimizer, adam, momentum, sgd

STEPS = 3
RULES = {
    "sgd": sgd(0.1),
    "momentum": momentum(0.1, 0.8),
    "adam with a large epsilon": adam(0.01, epsilon=1e-2),
    "sgd with decay": Optimizer("sgd", 0.1, weight_decay=0.2),
    "adam with coupled decay": Optimizer("adam", 0.01, weight_decay=0.2),
    "adam with decoupled decay": Optimizer("adam", 0.01, weight_decay=0.2, decoupled=True),
}


def formula(spec: Optimizer, weight: Any, gradients: list[Any]) -> Any:
    first = second = np.zeros_like(weight)
    for t, g in enumerate(gradients, 1):
        if spec.decoupled:
            weight = weight - spec.rate * spec.weight_decay * weight
        else:
            g = g + spec.weight_decay * weight
        if spec.algorithm == "adam":
            first = spec.betas[0] * first + (1 - spec.betas[0]) * g
            second = spec.betas[1] * second + (1 - spec.betas[1]) * g**2
            corrected = np.sqrt(second / (1 - spec.betas[1] ** t)) + spec.epsilon
            weight = weight - spec.rate * first / (1 - spec.betas[0] ** t) / corrected
        else:
            first = spec.momentum * first + g if spec.algorithm == "momentum" else g
            weight = weight - spec.rate * first
    return weight


@pytest.mark.parametrize(
    ("name", "mode"), [("residual", "graph"), ("sequence", "eager"), ("sequence", "session")]
)
@pytest.mark.parametrize("rule", RULES)
def test_optimizer_follows_its_formula_for_three_steps(
    rule: str, name: str, mode: str, lower: Any, work_of: Any
) -> None:
    program, batch = lower(name, RULES[rule], precision="fp64", mode=mode), work_of(name).batch
    start, gradients = program.weights(), []
    for _ in range(STEPS):
        gradients.append(program.gradients(batch)[1])
        program.step()
    for weight in gradients[0]:
        expected = formula(RULES[rule], start[weight], [gradient[weight] for gradient in gradients])
        np.testing.assert_allclose(
            program.weights()[weight], expected, rtol=1e-9, atol=1e-12, err_msg=weight
        )


def test_adam_corrects_its_bias_exactly_in_fp32(lower: Any, work_of: Any) -> None:
    """In the first step every weight moves by the rate, whatever its gradient: an error in
    1 − 0.999 would show."""
    program, batch = lower("perceptron", adam(0.5, epsilon=0.0)), work_of("perceptron").batch
    program.load({name: 0 * array for name, array in program.weights().items()})
    gradient = program.gradients(batch)[1]["dense2.bias"]
    program.step()
    np.testing.assert_allclose(
        program.weights()["dense2.bias"], -0.5 * np.sign(gradient), rtol=1e-6
    )


def test_optimizer_for_refuses_an_unknown_algorithm(lower: Any) -> None:
    with pytest.raises(Unsupported, match="'newton'"):
        lower("perceptron", Optimizer("newton", 0.1))
