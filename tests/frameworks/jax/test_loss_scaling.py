from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def loss_scaling() -> Any:
    from steptime.frameworks.jax import loss_scaling

    return loss_scaling


def test_update_scale_grows_after_patience_and_halves_on_overflow(loss_scaling: Any) -> None:
    start = loss_scaling.LossScaling.start()
    patient = start._replace(finite_steps=start.finite_steps + loss_scaling.PATIENCE - 1)
    grown = loss_scaling.update_scale(patient, True)
    halved = loss_scaling.update_scale(patient, False)
    assert (grown.scale, grown.finite_steps) == (2 * start.scale, 0)
    assert (halved.scale, halved.finite_steps) == (start.scale / 2, 0)
    assert loss_scaling.update_scale(start, True) == (start.scale, 1)


def test_all_finite_detects_a_single_infinity(loss_scaling: Any) -> None:
    assert loss_scaling.all_finite({"a": np.ones(3), "b": np.zeros(2)})
    assert not loss_scaling.all_finite({"a": np.ones(3), "b": np.array([0.0, np.inf])})


def test_step_that_overflows_moves_no_weight_and_halves_the_scale(lower: Any) -> None:
    program = lower("residual", precision="fp16")
    before = program.weights()
    program.state = program.state._replace(
        loss_scaling=program.state.loss_scaling._replace(scale=np.float32(2.0**40))
    )
    program.step()
    assert program.state.loss_scaling.scale == 2.0**39
    for name, array in program.weights().items():
        assert np.array_equal(array, before[name]) or "running" in name
