"""Three steps of every optimiser against its formula in NumPy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from steptime.core.errors import NotInstalled, Unsupported
from steptime.graph import Optimizer, adam, momentum, sgd

STEPS = 3


def formula(spec: Optimizer, weight: Any, gradients: list[Any]) -> Any:
    first = second = np.zeros_like(weight)
    for t, g in enumerate(gradients, 1):
        if spec.kind == "adam":
            first = spec.betas[0] * first + (1 - spec.betas[0]) * g
            second = spec.betas[1] * second + (1 - spec.betas[1]) * g**2
            corrected = np.sqrt(second / (1 - spec.betas[1] ** t)) + spec.epsilon
            weight = weight - spec.rate * first / (1 - spec.betas[0] ** t) / corrected
        else:
            first = spec.momentum * first + g if spec.kind == "momentum" else g
            weight = weight - spec.rate * first
    return weight


@pytest.mark.parametrize("spec", [sgd(0.1), momentum(0.1, 0.8), adam(0.01, epsilon=1e-4)], ids=lambda spec: spec.kind)
def test_three_steps_follow_the_formula(spec: Optimizer, lower: Any, work_of: Any) -> None:
    program, batch = lower("residual", spec, precision="fp64"), work_of("residual").batch
    start, gradients = program.weights(), []
    for _ in range(STEPS):
        gradients.append(program.gradients(batch)[1])
        program.step()
    for name in gradients[0]:
        expected = formula(spec, start[name], [gradient[name] for gradient in gradients])
        np.testing.assert_allclose(program.weights()[name], expected, rtol=1e-9, atol=1e-12, err_msg=name)


def test_an_unknown_optimiser_is_a_reason(lower: Any) -> None:
    with pytest.raises(Unsupported, match="'newton'"):
        lower("perceptron", Optimizer("newton", 0.1))


def test_only_training_needs_optax(lower: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optax", None)
    assert lower("perceptron", phase="inference").step() is not None
    with pytest.raises(NotInstalled, match="pip install optax"):
        lower("perceptron")
