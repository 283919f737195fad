"""Settings of the process."""

from __future__ import annotations

import os
from typing import Any

import pytest

from steptime.core.case import Case


def case(**settings: Any) -> Case:
    return Case(workload="lenet5", **settings)


def test_apply_sets_threads_from_the_case_or_the_affinity(torch: Any) -> None:
    from steptime.frameworks.pytorch import settings

    settings.apply(case(threads=1))
    assert torch.get_num_threads() == 1
    settings.apply(case())
    assert torch.get_num_threads() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_apply_allows_tf32_only_for_precision_tf32(torch: Any, precision: str) -> None:
    from steptime.frameworks.pytorch import settings

    settings.apply(case(precision=precision))
    allowed = precision == "tf32"
    assert torch.backends.cuda.matmul.allow_tf32 is allowed
    assert torch.backends.cudnn.allow_tf32 is allowed
    assert (torch.backends.cuda.matmul.fp32_precision == "tf32") is allowed


def test_apply_forbids_reduced_precision_reductions(torch: Any) -> None:
    from steptime.frameworks.pytorch import settings

    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    settings.apply(case(precision="bf16"))
    assert not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    assert not torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction


def test_stored_dtype_is_low_only_in_inference(torch: Any) -> None:
    from steptime.frameworks.pytorch.settings import stored_dtype

    assert stored_dtype(case(precision="bf16")) is torch.float32
    assert stored_dtype(case(precision="bf16", phase="forward")) is torch.float32
    assert stored_dtype(case(precision="bf16", phase="inference")) is torch.bfloat16
    assert stored_dtype(case(precision="fp64")) is torch.float64
