"""Settings of the process: threads, precision flags, choice of algorithms. All are recorded."""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import suppress
from typing import Any

import torch

from steptime.core.case import Case
from steptime.frameworks.pytorch.modes import INDUCTOR_MODES, is_captured, is_compiled

DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp64": torch.float64,
    # Of all but the products of dense layers.
    "fp8": torch.bfloat16,
    # Of the weights before they are quantised, and of layers that are not.
    "int8": torch.float32,
}


def uses_autocast(case: Case) -> bool:
    """Whether weights stay fp32 and autocast chooses what runs in the lower precision.

    So in all phases with gradients. Inference casts the weights themselves."""
    return case.phase != "inference" and case.precision in ("bf16", "fp16")


def stored_dtype(case: Case) -> torch.dtype:
    """The dtype of weights and inputs."""
    return torch.float32 if uses_autocast(case) else DTYPES[case.precision]


def apply(case: Case) -> None:
    # For dropout.
    torch.manual_seed(case.seed)
    torch.set_num_threads(case.threads_of(len(os.sched_getaffinity(0))))
    # Only possible before the process has computed anything.
    with suppress(RuntimeError):
        torch.set_num_interop_threads(1)
    set_tf32(case.precision == "tf32")
    add_in_fp32()
    if inductor := sys.modules.get("torch._inductor.config"):
        inductor.freezing = case.precision == "int8"  # type: ignore[attr-defined]
    torch.backends.cudnn.deterministic = False
    # Shapes never change, so the search costs time once, in the warm-up.
    torch.backends.cudnn.benchmark = True
    if case.device != "cpu":
        torch.cuda.set_device(torch.device(case.device))


def set_tf32(allowed: bool) -> None:
    """By the older flags: they set the newer `fp32_precision` too, but the reverse is not true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def add_in_fp32() -> None:
    """By default cuBLAS may add the pieces of a split sum in bf16 or fp16.

    With GPT-2 that made one product a third faster, but a gradient erred more than rounding
    explains, so that it was no longer the same work (METHOD.md, certificates)."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def facts(case: Case) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "weights_dtype": _dtype_name(stored_dtype(case)),
        "autocast_dtype": _dtype_name(DTYPES[case.precision]) if uses_autocast(case) else None,
        "compile_backend": "inductor" if is_compiled(case) else None,
        "compile_mode": INDUCTOR_MODES.get(case.mode),
        "cuda_graph": is_captured(case),
        "mkldnn": _mkldnn_version(),
    }
    if case.device == "cpu":
        facts["capability"] = torch.backends.cpu.get_cpu_capability()
        return facts
    facts.update(_cuda_facts(case.device))
    return facts


def _cuda_facts(device: str) -> dict[str, Any]:
    major, minor = torch.cuda.get_device_capability(device)
    matmul = torch.backends.cuda.matmul
    cudnn = torch.backends.cudnn
    return {
        "capability": f"{major}.{minor}",
        "device_name": torch.cuda.get_device_name(device),
        "tf32_matmul": matmul.allow_tf32,
        "tf32_cudnn": cudnn.allow_tf32,
        "cudnn_benchmark": cudnn.benchmark,
        "cudnn_deterministic": cudnn.deterministic,
        "reduced_precision_reduction": matmul.allow_bf16_reduced_precision_reduction,
    }


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _mkldnn_version() -> str | None:
    match = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
    return match and match[1]
