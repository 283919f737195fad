"""Tests of ONNX Runtime alone; `test_onnx_programs.py` has the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def test_step_with_bound_memory_computes_every_time(lower: Any) -> None:
    program = lower("images")
    before = program.step().numpy().copy()
    program.resident.update_inplace(2 * program.input)
    assert not np.array_equal(program.step().numpy(), before)


def test_facts_report_the_settings_in_use(lower: Any) -> None:
    facts = lower("images", threads=1).facts()
    assert (facts["threads"], facts["interop_threads"], facts["spinning"]) == (1, 1, False)
    assert facts["graph_optimization"] == "ORT_ENABLE_ALL"
    assert facts["providers"] == ["CPUExecutionProvider"]


def test_kernels_include_their_provider(lower: Any) -> None:
    kernels = lower("sequence").kernels()
    assert kernels["LSTM CPUExecutionProvider"] == 1
    assert not any(name.startswith("Cast") for name in kernels)


def test_lstm_gates_are_reordered_once_and_not_in_every_step(lower: Any) -> None:
    assert lower("sequence").kernels()["Gather CPUExecutionProvider"] == 1  # the embedding's


def test_gelu_runs_as_a_single_kernel(lower: Any) -> None:
    kernels = lower("attentive").kernels()
    operators = {name.split()[0] for name in kernels}
    assert operators & {"Gelu", "BiasGelu"} and "FastGelu" in operators
    assert not operators & {"Erf", "Tanh", "Pow"}


@pytest.mark.parametrize(
    ("policy", "spins"), [("default", False), ("passive", False), ("active", True)]
)
def test_threads_spin_only_if_the_case_asks_for_it(lower: Any, policy: str, spins: bool) -> None:
    assert lower("images", wait_policy=policy).facts()["spinning"] is spins
