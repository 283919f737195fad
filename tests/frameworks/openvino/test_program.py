"""Tests of OpenVINO alone; `test_onnx_programs.py` has the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.errors import Unsupported


def test_step_with_a_resident_input_computes_every_time(lower: Any) -> None:
    program = lower("images")
    before = program.step().copy()
    program.request.get_input_tensor().data[:] *= 2
    assert not np.array_equal(program.step(), before)


def test_facts_report_the_settings_in_use(lower: Any) -> None:
    facts = lower("images", threads=1).facts()
    assert (facts["threads"], facts["streams"], facts["inference_precision"]) == (1, 1, "f32")
    assert facts["telemetry"] is False


def test_kernels_of_fp32_compute_in_fp32(lower: Any) -> None:
    """By default OpenVINO computes in bf16 if the CPU has it."""
    kernels = lower("images").kernels()
    assert any(name.startswith("Convolution ") and name.endswith("f32") for name in kernels)
    assert not any(name.endswith("f16") for name in kernels)  # bf16 too


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_kernels_of_a_lower_precision_compute_in_it(lower: Any, precision: str) -> None:
    try:
        kernels = lower("images", precision=precision).kernels()
    except Unsupported as problem:
        pytest.skip(str(problem))
    op = {"bf16": "bf16", "fp16": "f16"}[precision]
    assert any(name.startswith("Convolution ") and name.endswith(op) for name in kernels)
