"""What DeepBench's programs print."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]

TEXT = """                  Running training benchmark
    m       n      k      a_t     b_t      precision        time (usec)
   1760     16   1760      n      n            float          38
   1760     32   1760      n      n            float          Not Supported
   w      h      c      n      k      f_w    f_h  pad_w  pad_h    stride_w  stride_h    precision  \
fwd_time (usec)  bwd_inputs_time (usec)  bwd_params_time (usec)  total_time (usec)   fwd_algo
 700    161     1      4     32     20     5      0      0        2          2           float     \
 78     120     127    325   IMPLICIT_GEMM
   type    hidden   N     timesteps   precision     fwd_time (usec)   bwd_inputs_time (usec)   \
bwd_params_time (usec)
   lstm    512    16    25    float    1095    937    165
"""


def test_times_are_in_microseconds_with_flops(read: Read) -> None:
    runs = read("out.txt", TEXT).runs
    assert runs[0].metrics == pytest.approx({"step_time": 38e-6, "flops": 2.6085e12}, rel=1e-4)
    assert (
        runs[0].dimensions["shape"] == "m1760 n16 k1760"
        and runs[0].dimensions["precision"] == "fp32"
    )


def test_unsupported_kernel_is_a_failure(read: Read) -> None:
    assert [run.failure for run in read("out.txt", TEXT).runs if run.failure] == ["Not Supported"]


def test_every_pass_is_a_run(read: Read) -> None:
    runs = read("out.txt", TEXT).runs
    convolution = {run.dimensions["mode"]: run.metrics["step_time"] for run in runs[2:5]}
    assert convolution == pytest.approx(
        {"forward": 78e-6, "backward inputs": 120e-6, "backward weights": 127e-6}
    )
    assert runs[5].dimensions["operator"] == "lstm" and runs[2].more["output"] == [341, 79]
