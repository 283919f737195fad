from __future__ import annotations

from typing import Any

import pytest

from steptime.frameworks.jax.kernels import kernels_of

TEXT = """
HloModule jit_train, entry_computation_layout={(f32[2]{0})->f32[2]{0}}

%fused_computation (param_0: f32[4,800]) -> f32[4,800] {
  %param_0 = f32[4,800]{1,0} parameter(0)
  ROOT %dot.1 = f32[4,800]{1,0} dot(%param_0, %param_0), lhs_contracting_dims={1}
}

ENTRY %main (x: f32[2]) -> f32[2] {
  %dot.2 = bf16[4,8]{1,0} dot(%a, %b), lhs_contracting_dims={1}
  %convolution.3 = f32[2,6,6,4]{3,2,1,0} convolution(%a, %b), window={size=3x3}
  %gemm = (f32[4,8]{1,0}, s8[4]{0}) custom-call(%a, %b), custom_call_target="__cublas$gemm"
  %loop = f32[4]{0} fusion(%a), op=kLoop, calls=%fused_computation
  %triton = f32[4]{0} fusion(%a), op=kCustom, config={"op":"__triton_gemm"}
  ROOT %while.51 = (s32[], /*index=5*/f32[20]{0}) while(%tuple), condition=%c, body=%b
}
"""


def test_kernels_of_counts_operations_libraries_and_fusions() -> None:
    assert kernels_of(TEXT) == {
        "__cublas$gemm": 1,
        "convolution f32": 1,
        "dot bf16": 1,
        "dot f32": 1,
        "fusion __triton_gemm": 1,
        "fusion kLoop": 1,
        "while": 1,
    }


@pytest.mark.parametrize("phase", ["training", "forward", "inference"])
def test_kernels_of_a_program_compile_nothing_new(lower: Any, phase: str) -> None:
    program = lower("residual", phase=phase)
    program.step()
    kernels = program.kernels()
    assert kernels["convolution f32"] >= 2 and kernels["dot f32"] >= 2
    assert program.compilations() == 1
    assert program.step() is not None


def test_kernels_of_a_sequence_include_the_loop(lower: Any) -> None:
    assert lower("sequence", phase="inference").kernels()["while"] == 1
