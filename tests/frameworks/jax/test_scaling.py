from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def scaling() -> Any:
    from steptime.frameworks.jax import scaling

    return scaling


def test_the_scale_grows_after_many_good_steps_and_halves_after_a_bad_one(scaling: Any) -> None:
    start = scaling.Scaling.start()
    patient = start._replace(good=start.good + scaling.PATIENCE - 1)
    grown, halved = scaling.follow(patient, True), scaling.follow(patient, False)
    assert (grown.scale, grown.good) == (2 * start.scale, 0)
    assert (halved.scale, halved.good) == (start.scale / 2, 0)
    assert scaling.follow(start, True) == (start.scale, 1)


def test_one_number_that_is_not_finite_spoils_all(scaling: Any) -> None:
    assert scaling.all_finite({"a": np.ones(3), "b": np.zeros(2)})
    assert not scaling.all_finite({"a": np.ones(3), "b": np.array([0.0, np.inf])})


def test_an_overflowing_step_moves_no_weight_and_halves_the_scale(lower: Any) -> None:
    program = lower("residual", precision="fp16")
    before = program.weights()
    program.state = program.state._replace(
        scaling=program.state.scaling._replace(scale=np.float32(2.0**40))
    )
    program.step()
    assert program.state.scaling.scale == 2.0**39
    for name, array in program.weights().items():
        assert np.array_equal(array, before[name]) or "running" in name
