from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def scaling(tensorflow: Any) -> Any:
    from steptime.frameworks.tensorflow.loss_scaling import LossScaling

    return LossScaling(lambda array: tensorflow.Variable(array, trainable=False))


def test_update_if_finite_grows_the_scale_after_patience_and_halves_it_on_overflow(
    scaling: Any, tensorflow: Any
) -> None:
    from steptime.frameworks.tensorflow.loss_scaling import FIRST, PATIENCE

    scaling.finite_steps.assign(PATIENCE - 1)
    scaling.update_if_finite([tensorflow.ones(2)], lambda gradients: [])
    assert (scaling.scale.numpy(), scaling.finite_steps.numpy()) == (2 * FIRST, 0)
    scaling.update_if_finite([tensorflow.constant([0.0, np.inf])], lambda gradients: [])
    assert (scaling.scale.numpy(), scaling.finite_steps.numpy()) == (FIRST, 0)
    scaling.update_if_finite([tensorflow.ones(2)], lambda gradients: [])
    assert (scaling.scale.numpy(), scaling.finite_steps.numpy()) == (FIRST, 1)


def test_update_if_finite_unscales_the_gradients(scaling: Any, tensorflow: Any) -> None:
    from steptime.frameworks.tensorflow.loss_scaling import FIRST

    seen: list[Any] = []
    scaling.update_if_finite(
        [tensorflow.fill(2, 3 * FIRST)], lambda gradients: seen.extend(gradients) or []
    )
    np.testing.assert_array_equal(seen[0], [3.0, 3.0])


@pytest.mark.parametrize("mode", ["eager", "graph", "session"])
def test_step_that_overflows_moves_no_weight_and_halves_the_scale(lower: Any, mode: str) -> None:
    program = lower("residual", precision="fp16", mode=mode)
    scale = {"scale": program.steps.loss_scaling.scale}
    program.execution.write(scale, {"scale": np.float32(2.0**40)})
    before = program.weights()
    program.step()
    assert program.execution.read(scale)["scale"] == 2.0**39
    for name, array in program.weights().items():
        assert np.array_equal(array, before[name]) or "running" in name
    program.execution.write(scale, {"scale": np.float32(2.0**8)})
    program.step()
    assert not np.array_equal(program.weights()["dense1.weight"], before["dense1.weight"])
