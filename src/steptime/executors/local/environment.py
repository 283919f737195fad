"""The environment of one worker: what is randomised, what is fixed, and what of it goes into the record."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any

from steptime.core.job import Job

PADDING = "STEPTIME_PADDING"
PARENT = "STEPTIME_PARENT"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Large tensors come from the heap and stay there, so a step does not fault its pages in anew (METHOD.md).
PINNED = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
# Inherited ones that can change a result. A list of what may be told, so that no secret is ever stored.
LIBRARIES = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_", "CUDA_", "CUDNN_", "NVIDIA_", "NCCL_")
FRAMEWORKS = ("TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TF_CPP_", "TF_ENABLE_", "TF_NUM_", "TF_XLA_", "XLA_", "JAX_")
TOLD = (*LIBRARIES, *FRAMEWORKS, "LD_PRELOAD")


def for_job(job: Job, inherited: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The variables to start with, and what is written down of them. The job's id seeds the randomised ones."""
    dice = random.Random(job.id)
    cpus = sorted(os.sched_getaffinity(0))  # of this process, and so of its workers
    threads = str(job.case.threads or len(cpus))
    variables = {name: value for name, value in inherited.items() if not _is_allocator(name)}
    told = {name: variables[name] for name in sorted(variables) if name.startswith(TOLD)}
    own = {"PYTHONHASHSEED": str(dice.randrange(1 << 32)), **dict.fromkeys(THREADS, threads)}
    if job.case.allocator == "pinned":
        own |= PINNED
    padding = dice.randrange(4096)
    hidden = {PADDING: "x" * padding, PARENT: str(os.getpid()), "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    wait_policy = variables.get("OMP_WAIT_POLICY", "library default")
    record = {**told, **own, "padding_bytes": padding, "wait_policy": wait_policy, "cpus": cpus}
    return {**variables, **own, **hidden}, record


def _is_allocator(name: str) -> bool:
    """The case says which allocator profile holds, never the shell that happened to start it."""
    return name.startswith("MALLOC_") or name == "GLIBC_TUNABLES"
