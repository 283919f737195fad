"""JAX: the whole step is one jitted program with donated state, on the CPU or on CUDA.

The functions import JAX themselves, so that this package can be imported without it and can say
how to install it."""

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
REQUIRES = ("jax", "optax")
OPTIONAL = ()
MODES = ("compiled",)
PACKAGES = ("jaxlib", "optax", "numpy", "jax-cuda12-plugin", "jax-cuda13-plugin")
# XLA raises RuntimeError for every failure; only the text says which.
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")


def versions() -> dict[str, str]:
    installed = {"jax": _jax().__version__, "python": platform.python_version()}
    for package in PACKAGES:
        package_version = _version(package)
        if package_version:
            installed[package] = package_version
    return installed


def unsupported(case: Case) -> str | None:
    jax = _jax()
    if case.mode == "eager":
        return "JAX without jit dispatches every operation separately; use mode=compiled."
    if case.mode != "compiled":
        return f"JAX has no mode {case.mode!r}; it has compiled."
    if case.precision == "int8":
        return (
            "JAX has no post-training quantisation to int8; "
            "use onnxruntime, openvino or pytorch compiled."
        )
    if case.precision == "fp8" and case.phase != "inference":
        return f"fp8 is for phase=inference; {case.phase} has fp32, tf32, bf16 and fp16."
    # What JAX has, not what it lacks: a library of another framework must not pass for its own.
    if case.exchange not in ("none", "independent", "allreduce"):
        return f"JAX has no exchange={case.exchange}; it has allreduce and independent."
    if case.device == "cpu":
        return _not_on_cpu(case)
    # Asking JAX for its devices starts it, and then the ranks can no longer join. `lower` joins
    # them first and asks again.
    if case.shares_gradients and not jax.distributed.is_initialized():
        return None
    return _not_on_cuda(case, jax)


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
    if isinstance(error, MemoryError):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(sign in message for sign in OUT_OF_MEMORY)


def _not_on_cpu(case: Case) -> str | None:
    if case.precision == "fp8":
        return (
            "fp8 products need a CUDA device of compute capability 8.9; the CPU has none. Use bf16."
        )
    if case.precision == "tf32":
        return "tf32 is a mode of NVIDIA's matrix units; the CPU has fp32."
    cpus = len(os.sched_getaffinity(0))
    if case.threads > cpus:
        return (
            f"XLA has one thread for each CPU that the process may use: {cpus}, "
            f"and the case asks for {case.threads}."
        )
    return None


def _not_on_cuda(case: Case, jax: Any) -> str | None:
    try:
        devices = jax.devices("cuda")
    except RuntimeError:  # what JAX raises if the platform is absent
        return f"jax {jax.__version__} sees no CUDA device."
    index = int(case.device.removeprefix("cuda:"))
    if index >= len(devices):
        return (
            f"There is no {case.device}: jax {jax.__version__} sees {len(devices)} "
            "CUDA device(s), counted from 0."
        )
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
            f"JAX cannot be imported ({problem}); install it with: {INSTALL}"
        ) from problem
    return jax


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
