"""What only OpenVINO has; `test_onnx_readers.py` has the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.errors import Unsupported


def test_a_preset_step_computes_anew(lower: Any) -> None:
    program = lower("images")
    before = program.step().copy()
    program.request.get_input_tensor().data[:] *= 2
    assert not np.array_equal(program.step(), before)


def test_facts_say_what_was_used(lower: Any) -> None:
    facts = lower("images", threads=1).facts()
    assert (facts["threads"], facts["streams"], facts["inference_precision"]) == (1, 1, "f32")
    assert facts["telemetry"] is False


def test_fp32_is_computed_by_kernels_of_fp32(lower: Any) -> None:
    """Left to itself OpenVINO computes in bf16 where the CPU has it."""
    kernels = lower("images").kernels()
    assert any(name.startswith("Convolution ") and name.endswith("f32") for name in kernels)
    assert not any(name.endswith("f16") for name in kernels)  # bf16 too


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_a_lower_precision_is_computed_by_its_own_kernels(lower: Any, precision: str) -> None:
    try:
        kernels = lower("images", precision=precision).kernels()
    except Unsupported as problem:
        pytest.skip(str(problem))
    op = {"bf16": "bf16", "fp16": "f16"}[precision]
    assert any(name.startswith("Convolution ") and name.endswith(op) for name in kernels)
