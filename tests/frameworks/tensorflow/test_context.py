"""Sums of low-precision numbers that must be computed in fp32."""

from __future__ import annotations

from typing import Any

import pytest

COUNT = 20_000  # bf16 stops growing at 256 equal summands


@pytest.mark.parametrize("xla", [False, True])
def test_add_bias_sums_its_gradient_in_fp32(tensorflow: Any, xla: bool) -> None:
    from steptime.frameworks.tensorflow.context import add_bias

    values, bias = (tensorflow.zeros(shape, "bfloat16") for shape in ((COUNT, 3), 3))

    @tensorflow.function(jit_compile=xla)
    def gradient() -> Any:
        with tensorflow.GradientTape() as tape:
            tape.watch(bias)
            y = add_bias(values, bias)
        return tape.gradient(
            y, bias, output_gradients=tensorflow.cast(tensorflow.fill(y.shape, 1e-3), y.dtype)
        )

    assert gradient().numpy().astype(float).tolist() == pytest.approx([1e-3 * COUNT] * 3, rel=0.01)
