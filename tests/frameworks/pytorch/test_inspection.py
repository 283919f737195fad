"""A step in stages, its profile by operator, and its memory account."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.inspection import BETWEEN
from steptime.graph import adam
from steptime.tasks.profile.classes import class_of


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_step_in_stages_trains_like_a_plain_step(lower: Any, precision: str) -> None:
    plain, staged = (lower("residual", precision=precision) for _ in range(2))
    names: list[str] = []
    for _ in range(2):
        plain.step(), staged.step_in_stages(names.append)
    assert names[:5] == ["optimizer", "forward", "loss", "backward", "optimizer"]
    for name, array in plain.weights().items():
        np.testing.assert_array_equal(staged.weights()[name], array, err_msg=name)


def test_step_in_stages_marks_the_copy_of_the_batch(lower: Any) -> None:
    names: list[str] = []
    output = lower("perceptron", phase="inference", data="host").step_in_stages(names.append)
    assert names == ["data", "forward"] and output.shape == (4, 4)
    lower("perceptron", phase="forward").step_in_stages(names.append)
    assert names[2:] == ["forward", "loss"]


def test_profile_operators_fill_the_time_of_the_steps(lower: Any) -> None:
    program = lower("residual")
    for _ in range(3):
        program.step()
    profile = program.profile(4)
    assert sum(op.seconds for op in profile.operators) == pytest.approx(profile.seconds, rel=0.2)
    calls = {op.name: op.calls for op in profile.operators}
    assert calls[BETWEEN] == 4 and calls["aten::convolution_backward"] == 8
    assert sum(event["name"] == "step" for event in profile.events if event["ph"] == "X") == 4
    unclassified = [op.seconds for op in profile.operators if class_of(op.name) == "other"]
    assert sum(unclassified) < 0.05 * profile.seconds


def test_memory_account_agrees_with_closed_forms(lower: Any) -> None:
    program = lower("residual", adam(1e-3))
    for _ in range(2):
        program.step()
    held = program.memory_account().held
    weights = list(program.module.parameters())
    weight_bytes = sum(4 * weight.numel() for weight in weights)
    assert held["weights"] == weight_bytes
    # Two moments, and a step counter for each weight.
    assert held["optimizer state"] == 2 * weight_bytes + 4 * len(weights)
    assert held["inputs"] == program.input.nbytes + program.target.nbytes
    assert held["activations"] > 0 and set(held) >= {"buffers", "activations"}
    assert program.memory_account().held == held  # the hooks are removed


def test_memory_account_of_inference_has_no_activations(lower: Any) -> None:
    program = lower("residual", phase="inference")
    assert {"activations", "gradients"}.isdisjoint(program.memory_account().held)
