from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def scaling(tensorflow: Any) -> Any:
    from steptime.frameworks.tensorflow.scaling import Scaling

    return Scaling(lambda array: tensorflow.Variable(array, trainable=False))


def test_the_scale_grows_after_many_good_steps_and_halves_after_a_bad_one(
    scaling: Any, tensorflow: Any
) -> None:
    from steptime.frameworks.tensorflow.scaling import FIRST, PATIENCE

    scaling.good.assign(PATIENCE - 1)
    scaling.guarded([tensorflow.ones(2)], lambda gradients: [])
    assert (scaling.scale.numpy(), scaling.good.numpy()) == (2 * FIRST, 0)
    scaling.guarded([tensorflow.constant([0.0, np.inf])], lambda gradients: [])
    assert (scaling.scale.numpy(), scaling.good.numpy()) == (FIRST, 0)
    scaling.guarded([tensorflow.ones(2)], lambda gradients: [])
    assert (scaling.scale.numpy(), scaling.good.numpy()) == (FIRST, 1)


def test_weights_move_by_the_unscaled_slopes(scaling: Any, tensorflow: Any) -> None:
    from steptime.frameworks.tensorflow.scaling import FIRST

    seen: list[Any] = []
    scaling.guarded([tensorflow.fill(2, 3 * FIRST)], lambda gradients: seen.extend(gradients) or [])
    np.testing.assert_array_equal(seen[0], [3.0, 3.0])


@pytest.mark.parametrize("mode", ["eager", "graph", "session"])
def test_an_overflowing_step_moves_no_weight_and_halves_the_scale(lower: Any, mode: str) -> None:
    program = lower("residual", precision="fp16", mode=mode)
    scale = {"scale": program.steps.scaling.scale}
    program.execution.write(scale, {"scale": np.float32(2.0**40)})
    before = program.weights()
    program.step()
    assert program.execution.read(scale)["scale"] == 2.0**39
    for name, array in program.weights().items():
        assert np.array_equal(array, before[name]) or "running" in name
    program.execution.write(scale, {"scale": np.float32(2.0**8)})
    program.step()
    assert not np.array_equal(program.weights()["dense1.weight"], before["dense1.weight"])
