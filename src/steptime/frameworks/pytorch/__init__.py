"""PyTorch, eager, compiled or replayed as a CUDA graph, or both, on CPU and CUDA.

The functions import PyTorch, and not the module, so that INSTALL can be read without PyTorch."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.core.program import Program
from steptime.frameworks.pytorch.modes import is_captured, is_compiled
from steptime.graph import Work

INSTALL = "pip install 'steptime[pytorch]'"
REQUIRES = ("torch",)
OPTIONAL = ("torchao", "horovod", "psutil")
MODES = ("eager", "compiled", "cudagraph", "compiled-cudagraph", "max-autotune")
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "DefaultCPUAllocator",
    "STATUS_ALLOC_FAILED",
)
DRIVER_FILE = Path("/proc/driver/nvidia/version")


def versions() -> dict[str, str]:
    torch = _torch()
    import numpy

    software = {
        "pytorch": torch.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }
    if torch.cuda.is_available():
        software["cuda"] = torch.version.cuda
        software["cudnn"] = str(torch.backends.cudnn.version())
        software["driver"] = _driver_version(torch)
    return software


def import_for(case: Case) -> None:
    """Import now what PyTorch itself imports late."""
    if is_compiled(case):
        import torch._inductor.compile_fx
    elif case.phase == "training":
        # Every optimiser imports it.
        import torch._dynamo  # noqa: F401


def unsupported(case: Case) -> str | None:
    torch = _torch()
    if case.mode not in MODES:
        return f"PyTorch has no mode {case.mode!r}; it has {', '.join(MODES)}."
    if case.precision in ("fp8", "int8") and case.phase != "inference":
        return (
            f"{case.precision} is for phase=inference; {case.phase} has fp32, tf32, bf16 and fp16."
        )
    reason = None
    if case.precision == "int8":
        reason = _unsupported_in_int8(case)
    if reason is None and case.device == "cpu":
        reason = _unsupported_on_cpu(case)
    elif reason is None:
        reason = _unsupported_on_cuda(case, torch)
    if reason is None and case.ranks > 1:
        from steptime.frameworks.pytorch import exchange

        reason = exchange.unsupported(case)
    return reason


def lower(work: Work, case: Case) -> Program:
    if reason := unsupported(case):
        raise Unsupported(reason)
    if case.precision == "int8":
        from steptime.frameworks.pytorch.quantised import QuantisedProgram

        return QuantisedProgram(work, case)
    if case.precision == "fp8":
        from steptime.frameworks.pytorch.fp8 import Fp8Program

        return Fp8Program(work, case)
    from steptime.frameworks.pytorch.program import PytorchProgram

    return PytorchProgram(work, case)


def measure_peaks(device: str, seconds: float) -> dict[str, Any]:
    _torch()
    from steptime.frameworks.pytorch import peaks

    return peaks.measure_peaks(device, seconds)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    # Without PyTorch in the process, the error cannot be PyTorch's.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    # On the CPU, PyTorch raises a plain RuntimeError.
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in OUT_OF_MEMORY)


def _unsupported_in_int8(case: Case) -> str | None:
    if case.device != "cpu":
        return (
            "int8 runs on the CPU: PT2E's quantiser here is the one for Inductor's x86 kernels; "
            "use fp8 or fp16."
        )
    if case.mode != "compiled":
        return "PyTorch's int8 kernels are reached through Inductor only; use mode=compiled."
    if not find_spec("torchao"):
        raise NotInstalled(
            "PyTorch's quantiser torchao is not installed; "
            "install it with: pip install 'steptime[int8]'"
        )
    return None


def _unsupported_on_cpu(case: Case) -> str | None:
    if case.precision == "fp8":
        return (
            "fp8 products need a CUDA device of compute capability 8.9; the CPU has none. "
            "Use int8 or bf16."
        )
    if case.precision == "tf32":
        return "tf32 is a mode of NVIDIA's matrix units; the CPU has fp32."
    if case.mode == "max-autotune":
        # Tried with torch 2.13: without frozen weights it is the same code as mode=compiled.
        return (
            "On the CPU Inductor has kernels to choose from only if weights are frozen; "
            "use mode=compiled."
        )
    if is_captured(case):
        return "A CUDA graph needs a CUDA device; the case is for the CPU."
    if is_compiled(case) and not shutil.which("g++"):
        return "torch.compile on the CPU needs a C++ compiler, and there is no g++ on the path."
    return None


def _unsupported_on_cuda(case: Case, torch: Any) -> str | None:
    torch_version = f"torch {torch.__version__}"
    if not torch.cuda.is_available():
        return f"{torch_version} sees no CUDA device."
    index = int(case.device.removeprefix("cuda:"))
    count = torch.cuda.device_count()
    if index >= count:
        return (
            f"There is no {case.device}: {torch_version} sees {count} CUDA device(s), "
            "counted from 0."
        )
    capability = torch.cuda.get_device_capability(index)
    device = f"{case.device} has {capability[0]}.{capability[1]}."
    if case.precision in ("tf32", "bf16") and capability < (8, 0):
        return f"{case.precision} needs compute capability 8.0; {device}"
    if case.precision == "fp8" and capability < (8, 9):
        return f"fp8 needs compute capability 8.9; {device} Use bf16."
    if is_compiled(case) and not find_spec("triton"):
        return "torch.compile on CUDA needs triton, which is not installed."
    if is_captured(case) and (case.phase, case.precision) == ("training", "fp16"):
        return (
            "Loss scaling decides on the host whether to step, which a CUDA graph cannot; use bf16."
        )
    return None


def _torch() -> ModuleType:
    try:
        import torch
    except ImportError as problem:
        raise NotInstalled(
            f"PyTorch cannot be imported here ({problem}); install it with: {INSTALL}"
        ) from problem
    return torch


def _driver_version(torch: Any) -> str:
    """Of the kernel module if the system shows it, else the CUDA version that the driver offers."""
    if DRIVER_FILE.exists():
        _, _, after = DRIVER_FILE.read_text().partition("Kernel Module")
        for text in after.split():
            if text[0].isdigit():
                return text
    return f"CUDA {torch._C._cuda_getDriverVersion()}"
