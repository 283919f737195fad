from __future__ import annotations

import os
from typing import Any

import pytest

from steptime.core.case import Case


def case(**settings: Any) -> Case:
    return Case(workload="lenet5", **settings)


def test_threads_are_what_the_case_says_or_every_cpu_that_may_be_used(torch: Any) -> None:
    from steptime.frameworks.pytorch import settings

    settings.apply(case(threads=1))
    assert torch.get_num_threads() == 1
    settings.apply(case())
    assert torch.get_num_threads() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_tf32_is_on_only_where_it_is_asked_for(torch: Any, precision: str) -> None:
    from steptime.frameworks.pytorch import settings

    settings.apply(case(precision=precision))
    wanted = precision == "tf32"
    assert torch.backends.cuda.matmul.allow_tf32 is wanted
    assert torch.backends.cudnn.allow_tf32 is wanted
    assert (torch.backends.cuda.matmul.fp32_precision == "tf32") is wanted


def test_parts_of_a_sum_are_added_in_fp32(torch: Any) -> None:
    from steptime.frameworks.pytorch import settings

    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    settings.apply(case(precision="bf16"))
    assert not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    assert not torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction


def test_only_inference_stores_weights_in_a_lower_precision(torch: Any) -> None:
    from steptime.frameworks.pytorch.settings import stored_dtype

    assert stored_dtype(case(precision="bf16")) is torch.float32
    assert stored_dtype(case(precision="bf16", phase="forward")) is torch.float32
    assert stored_dtype(case(precision="bf16", phase="inference")) is torch.bfloat16
    assert stored_dtype(case(precision="fp64")) is torch.float64
