"""JAX: the whole step as one jitted program with donated state, on CPU and CUDA.

JAX itself is imported by the functions, so that the folder can be asked how to install it where it is missing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.core.program import Program
from steptime.graph import Work

INSTALL = "pip install 'steptime[jax]'"
MODES = ("compiled",)
PARTS = ("jaxlib", "optax", "numpy", "jax-cuda12-plugin", "jax-cuda13-plugin")


def versions() -> dict[str, str]:
    found = {"jax": _jax().__version__, "python": platform.python_version()}
    return found | {part: text for part in PARTS if (text := _version(part))}


def unsupported(case: Case) -> str | None:
    jax = _jax()
    if case.mode == "eager":
        return "JAX without jit dispatches every operation on its own, which nobody does; use mode=compiled."
    if case.mode != "compiled":
        return f"JAX has no mode {case.mode!r}; it has compiled."
    if case.precision == "int8":
        return "JAX has no post-training quantisation to int8; use onnxruntime, openvino or pytorch compiled."
    if case.precision == "fp8" and case.phase != "inference":
        return f"fp8 is for phase=inference; {case.phase} has fp32, tf32, bf16 and fp16."
    if case.exchange in ("parameter_server", "horovod"):
        return f"JAX knows no exchange={case.exchange}; it has allreduce and independent."
    if case.device == "cpu":
        return _not_on_cpu(case)
    # JAX must not be asked for its devices before the ranks have met, which `lower` sees to before it asks again.
    waits = case.shares_gradients and not jax.distributed.is_initialized()
    return None if waits else _not_on_cuda(case, jax)


def lower(work: Work, case: Case) -> Program:
    if case.shares_gradients:
        from steptime.frameworks.jax.exchange import SharedProgram, join

        join(case)
    if reason := unsupported(case):
        raise Unsupported(reason)
    if case.shares_gradients:
        return SharedProgram(work, case)
    if case.precision == "fp8":
        from steptime.frameworks.jax.fp8 import Fp8Program

        return Fp8Program(work, case)
    from steptime.frameworks.jax.program import JaxProgram

    return JaxProgram(work, case)


def is_out_of_memory(error: BaseException) -> bool:
    signs = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)
    )


def _not_on_cpu(case: Case) -> str | None:
    if case.precision == "fp8":
        return (
            "fp8 products need a CUDA device of compute capability 8.9; the CPU has none. Use bf16."
        )
    if case.precision == "tf32":
        return "tf32 is a mode of NVIDIA's matrix units; the CPU has fp32."
    if case.threads > (cpus := len(os.sched_getaffinity(0))):
        return f"XLA has one thread for each CPU that the process may use: {cpus}, and the case asks for {case.threads}."
    return None


def _not_on_cuda(case: Case, jax: Any) -> str | None:
    try:
        devices = jax.devices("cuda")
    except RuntimeError:  # what JAX raises where the platform is absent
        return f"jax {jax.__version__} sees no CUDA device."
    index, count = int(case.device.removeprefix("cuda:")), len(devices)
    if index >= count:
        return f"There is no {case.device}: jax {jax.__version__} sees {count} CUDA device(s), counted from 0."
    capability = devices[index].compute_capability
    if case.precision in ("tf32", "bf16") and float(capability) < 8:
        return f"{case.precision} needs compute capability 8.0; {case.device} has {capability}."
    if case.precision == "fp8" and float(capability) < 8.9:
        return f"fp8 needs compute capability 8.9; {case.device} has {capability}. Use bf16."
    return None


def _jax() -> ModuleType:
    try:
        import jax
    except ImportError as problem:
        raise NotInstalled(
            f"JAX cannot be imported here ({problem}); install it with: {INSTALL}"
        ) from problem
    return jax


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
