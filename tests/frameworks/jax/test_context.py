"""Sums of low-precision numbers that must be computed in fp32."""

from __future__ import annotations

from typing import Any

import pytest

COUNT = 20_000  # bf16 stops growing at 256 equal summands


def test_add_bias_sums_its_gradient_in_fp32(jax: Any) -> None:
    from steptime.frameworks.jax.context import LoweringContext
    from steptime.frameworks.jax.layout import Layout

    context = LoweringContext(Layout(last=False), "bfloat16", training=True)
    values, bias = (jax.numpy.zeros(shape, "bfloat16") for shape in ((COUNT, 3), 3))
    y, back = jax.vjp(jax.jit(lambda bias: context.add_bias(values, bias)), bias)
    assert y.dtype == "bfloat16"
    assert back(jax.numpy.full_like(y, 1e-3))[0].tolist() == pytest.approx(
        [1e-3 * COUNT] * 3, rel=0.01
    )
