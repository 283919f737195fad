"""The look inside a step: the same work in parts, operators that fill its time, memory that closed forms confirm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.inspection import BETWEEN
from steptime.graph import adam
from steptime.tasks.profile.classes import class_of


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_staged_step_trains_as_the_plain_one_does(lower: Any, precision: str) -> None:
    plain, parted = (lower("residual", precision=precision) for _ in range(2))
    names: list[str] = []
    for _ in range(2):
        plain.step(), parted.step_in_stages(names.append)
    assert names[:5] == ["optimizer", "forward", "loss", "backward", "optimizer"]
    for name, array in plain.weights().items():
        np.testing.assert_array_equal(parted.weights()[name], array, err_msg=name)


def test_a_step_that_fetches_its_batch_says_so(lower: Any) -> None:
    names: list[str] = []
    output = lower("perceptron", phase="inference", data="host").step_in_stages(names.append)
    assert names == ["data", "forward"] and output.shape == (4, 4)
    lower("perceptron", phase="forward").step_in_stages(names.append)
    assert names[2:] == ["forward", "loss"]


def test_operators_fill_the_time_of_the_steps(lower: Any) -> None:
    program = lower("residual")
    for _ in range(3):
        program.step()
    seen = program.profile(4)
    assert sum(one.seconds for one in seen.operators) == pytest.approx(seen.seconds, rel=0.2)
    calls = {one.name: one.calls for one in seen.operators}
    assert calls[BETWEEN] == 4 and calls["aten::convolution_backward"] == 8
    assert sum(event["name"] == "step" for event in seen.events if event["ph"] == "X") == 4
    strangers = [one.seconds for one in seen.operators if class_of(one.name) == "other"]
    assert sum(strangers) < 0.05 * seen.seconds


def test_memory_at_the_peak_agrees_with_closed_forms(lower: Any) -> None:
    program = lower("residual", adam(1e-3))
    for _ in range(2):
        program.step()
    held = program.memory_account().held
    weights = list(program.module.parameters())
    own = sum(4 * one.numel() for one in weights)
    assert held["weights"] == own
    assert held["optimizer state"] == 2 * own + 4 * len(weights)  # and a step counter for each
    assert held["inputs"] == program.input.nbytes + program.target.nbytes
    assert held["activations"] > 0 and set(held) >= {"buffers", "activations"}
    assert program.memory_account().held == held  # the hooks are gone again


def test_inference_keeps_no_activations(lower: Any) -> None:
    program = lower("residual", phase="inference")
    assert {"activations", "gradients"}.isdisjoint(program.memory_account().held)
