"""Settings of the process: threads, 64-bit numbers, precision of products.

Every one is set explicitly and recorded."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.ranks import read_ranks

DTYPES = {
    "fp32": jnp.float32,
    "tf32": jnp.float32,
    "bf16": jnp.bfloat16,
    "fp16": jnp.float16,
    "fp64": jnp.float64,
    "fp8": jnp.bfloat16,  # of everything but the products of dense layers
}
# By default JAX uses TF32 for products of fp32 numbers on a GPU.
PRODUCTS = {"fp32": "highest", "fp64": "highest", "tf32": "tensorfloat32"}
POOL = "tf_XLAEigen"  # the name of XLA's compute threads on the CPU


def is_mixed(case: Case) -> bool:
    """If gradients are possible, weights stay fp32 and each step casts them. Inference casts them
    once."""
    return case.phase != "inference" and case.precision in ("bf16", "fp16")


def stored_dtype(case: Case) -> Any:
    """Of weights."""
    return jnp.dtype(jnp.float32 if is_mixed(case) else DTYPES[case.precision])


def computed_dtype(case: Case) -> Any:
    """Of inputs and activations."""
    return jnp.dtype(DTYPES[case.precision])


def apply(case: Case) -> Any:
    """Returns the device. The first call in a process starts XLA, which then keeps its threads."""
    jax.config.update("jax_enable_x64", case.precision == "fp64")
    jax.config.update("jax_default_matmul_precision", PRODUCTS.get(case.precision))
    if case.device != "cpu":
        return _cuda_device(case)
    if not jax.config.jax_platforms:
        # Otherwise JAX would reserve most of the memory of a GPU that the case does not use.
        jax.config.update("jax_platforms", "cpu")
    threads = _confine(case)
    device = jax.local_devices(backend="cpu")[0]
    if threads and pool_threads() not in (0, threads):
        raise SteptimeError(
            f"XLA already runs with {pool_threads()} threads in this process and the case asks for "
            f"{threads}; start another process for it."
        )
    return device


def _cuda_device(case: Case) -> Any:
    devices = jax.local_devices(backend="cuda")
    # After `exchange.join` each process sees only its own device.
    if jax.distributed.is_initialized():
        return devices[0]
    return devices[int(case.device.removeprefix("cuda:"))]


def has_cudnn_attention(device: Any) -> bool:
    return device.platform == "gpu" and float(device.compute_capability) >= 8


def _confine(case: Case) -> int:
    """Limit the CPUs of this process, and return how many threads XLA must have. 0: any number.

    XLA has no setting for its threads: its pool has one for each CPU that the process may use when
    XLA starts. Ranks of one host take different CPUs as long as there are enough."""
    cpus = sorted(os.sched_getaffinity(0))
    threads = case.threads_of(len(cpus))
    if threads >= len(cpus):
        return case.threads
    first = 0
    if case.ranks > 1:
        first = read_ranks(os.environ).local * threads % (len(cpus) - threads + 1)
    os.sched_setaffinity(0, cpus[first : first + threads])
    return threads


def facts(case: Case, device: Any) -> dict[str, Any]:
    backend = device.platform if case.device == "cpu" else device.client.platform_version
    return {
        "backend": backend,
        "device_name": device.device_kind,
        "devices": len(jax.devices(device.platform)),
        "threads": len(os.sched_getaffinity(0)),
        "pool_threads": pool_threads(),
        "x64": jax.config.jax_enable_x64,
        "matmul_precision": jax.config.jax_default_matmul_precision or "default",
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "random_numbers": jax.config.jax_default_prng_impl,
        "weights_dtype": stored_dtype(case).name,
        "computed_dtype": computed_dtype(case).name,
        "synchronised": "every step",
    }


def pool_threads() -> int:
    """Counted, not assumed."""
    return sum(_thread_name(task) == POOL for task in Path("/proc/self/task").iterdir())


def _thread_name(task: Path) -> str:
    with suppress(OSError):  # the thread has ended meanwhile
        return (task / "comm").read_text().strip()
    return ""
