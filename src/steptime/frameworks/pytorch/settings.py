"""What holds for a whole process: threads, precision flags, choice of algorithms. Set explicitly and recorded."""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import suppress
from typing import Any

import torch

from steptime.core.case import Case

DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp64": torch.float64,
    "fp8": torch.bfloat16,  # of all but the products of dense layers
    "int8": torch.float32,  # of what is quantised, and of what is not
}


def mixed(case: Case) -> bool:
    """Wherever gradients are possible, weights stay fp32 and autocast chooses what runs in the lower precision.
    Inference casts the weights themselves."""
    return case.phase != "inference" and case.precision in ("bf16", "fp16")


def stored_dtype(case: Case) -> torch.dtype:
    """Of weights and inputs."""
    return torch.float32 if mixed(case) else DTYPES[case.precision]


def apply(case: Case) -> None:
    torch.manual_seed(case.seed)  # dropout
    torch.set_num_threads(case.threads_of(len(os.sched_getaffinity(0))))
    with suppress(RuntimeError):  # only possible before the process has computed anything
        torch.set_num_interop_threads(1)
    set_tf32(case.precision == "tf32")
    add_in_fp32()
    if inductor := sys.modules.get("torch._inductor.config"):
        inductor.freezing = case.precision == "int8"  # type: ignore[attr-defined]
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = (
        True  # shapes never change, so the search is paid once, in the warm-up
    )
    if case.device != "cpu":
        torch.cuda.set_device(torch.device(case.device))


def set_tf32(allowed: bool) -> None:
    """The flags of old: they set the newer `fp32_precision` too, while the reverse leaves the two at odds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def add_in_fp32() -> None:
    """By default cuBLAS may add the parts of a split sum in bf16 or fp16: with GPT-2 that took a third off one product
    and cost a gradient more than rounding explains, so that it was no longer the same work (METHOD.md, section 13)."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def facts(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "weights_dtype": str(stored_dtype(case)).removeprefix("torch."),
        "autocast_dtype": str(DTYPES[case.precision]).removeprefix("torch.")
        if mixed(case)
        else None,
        "compile_backend": "inductor" if case.mode == "compiled" else None,
        "mkldnn": _mkldnn_version(),
    }
    if case.device == "cpu":
        return {**found, "capability": torch.backends.cpu.get_cpu_capability()}
    return {
        **found,
        "capability": ".".join(map(str, torch.cuda.get_device_capability(case.device))),
        "device_name": torch.cuda.get_device_name(case.device),
        "tf32_matmul": torch.backends.cuda.matmul.allow_tf32,
        "tf32_cudnn": torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "reduced_precision_reduction": torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    }


def _mkldnn_version() -> str | None:
    found = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
    return found and found[1]
