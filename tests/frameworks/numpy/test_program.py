"""Phases, moving statistics and weights of the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Tensor


def normal(net: Net) -> Tensor:
    return net.dense(net.dropout(net.batch_norm(net.dense(net.input(4), 8)), 0.5), 3)


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ({"precision": "fp32"}, "use precision=fp64"),
        ({"precision": "fp64", "mode": "compiled"}, "use mode=eager"),
        ({"precision": "fp64", "device": "cuda:0"}, "use device=cpu"),
        ({"precision": "fp64", "layout": "nhwc"}, "use layout=nchw"),
    ],
)
def test_unsupported_names_the_setting_to_use(setting: dict[str, str], hint: str) -> None:
    reason = reference.unsupported(Case(workload="lenet5", framework="numpy", **setting))
    assert reason is not None and hint in reason


def test_inference_step_changes_no_weight(lower: Callable[..., Any]) -> None:
    program = lower(normal, phase="inference")
    before, first = program.weights(), program.step()
    assert np.array_equal(program.step(), first)
    assert all(np.array_equal(array, before[name]) for name, array in program.weights().items())


def test_forward_step_returns_the_loss_and_moves_only_statistics(lower: Callable[..., Any]) -> None:
    program = lower(normal, phase="forward")
    before = program.weights()
    assert program.step() > 0
    moved = {
        name for name, array in program.weights().items() if not np.array_equal(array, before[name])
    }
    assert moved == {"batch_norm1.running_mean", "batch_norm1.running_variance"}


def test_forward_step_updates_moving_statistics(lower: Callable[..., Any]) -> None:
    program = lower(
        lambda net: net.dense(net.batch_norm(net.input(4)), 3), phase="forward", batch_size=5
    )
    program.step()
    x, weights = program.batch["input"], program.weights()
    np.testing.assert_allclose(weights["batch_norm1.running_mean"], 0.1 * x.mean(axis=0))
    np.testing.assert_allclose(
        weights["batch_norm1.running_variance"], 0.9 + 0.1 * x.var(axis=0, ddof=1)
    )


def test_gradients_change_no_weight_and_have_no_dropout(lower: Callable[..., Any]) -> None:
    program = lower(normal)
    before = program.weights()
    first, second = program.gradients(program.batch), program.gradients(program.batch)
    assert first[0] == second[0]  # no dropout
    assert all(np.array_equal(array, before[name]) for name, array in program.weights().items())


def test_dropout_differs_by_step_and_repeats_with_the_seed(
    lower: Callable[..., Any],
) -> None:
    first = lower(normal, phase="forward")
    second = lower(normal, phase="forward")
    losses = [first.step(), first.step()]
    assert losses[0] != losses[1]
    assert losses == [second.step(), second.step()]


def test_load_rejects_weights_of_another_shape(lower: Callable[..., Any]) -> None:
    program = lower(normal)
    with pytest.raises(SteptimeError, match=r"needs 'dense2.bias' of shape \(3,\), found \(4,\)"):
        program.load({**program.weights(), "dense2.bias": np.zeros(4)})


def test_feed_sets_the_batch_of_the_next_step(lower: Callable[..., Any]) -> None:
    program, batch = lower(normal, phase="inference"), lower(normal, seed=1).batch
    program.feed(batch)
    assert np.array_equal(program.step(), program.predict(batch))
    assert program.kernels() == {}


def test_is_out_of_memory_recognises_memory_errors() -> None:
    assert reference.is_out_of_memory(MemoryError())
    assert not reference.is_out_of_memory(ValueError())
