"""The environment of one worker: what is randomised, what is fixed, and what of it goes into the record."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.ranks import STARTERS

PADDING = "STEPTIME_PADDING"
PARENT = "STEPTIME_PARENT"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Large tensors come from the heap and stay there, so a step does not fault its pages in anew (METHOD.md).
PINNED = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
# How threads wait for work: OpenMP's word, and those by which its libraries overrule it.
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
# Of another starter, outside: a worker that finds them would take itself for one of its ranks. srun needs Slurm's.
RANKS = tuple(name for names in STARTERS for name in names if not name.startswith("SLURM_"))
# Where compilers keep what they made. JAX keeps nothing unless it is told where to, so a cold one is not told.
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
ONLY_WARM = ("JAX_COMPILATION_CACHE_DIR",)
# Inherited ones that can change a result. A list of what may be told, so that no secret is ever stored.
LIBRARIES = (
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "OPENBLAS_",
    "DNNL_",
    "ONEDNN_",
    "CUDA_",
    "CUDNN_",
    "NVIDIA_",
    "NCCL_",
)
FRAMEWORKS = (
    "TORCH_",
    "TORCHINDUCTOR_",
    "PYTORCH_",
    "TF_CPP_",
    "TF_ENABLE_",
    "TF_NUM_",
    "TF_XLA_",
    "XLA_",
    "JAX_",
)
TOLD = (*LIBRARIES, *FRAMEWORKS, "LD_PRELOAD")


def for_job(
    job: Job, inherited: Mapping[str, str], cache: str = ""
) -> tuple[dict[str, str], dict[str, Any]]:
    """The variables to start with, and what is written down of them. The job's id seeds the randomised ones.

    `cache` is an empty folder, for a case whose compilers start cold."""
    rng, case = random.Random(job.id), job.case
    cpus = sorted(os.sched_getaffinity(0))  # of this process, and so of its workers
    threads = str(case.threads_of(len(cpus)))
    variables = {name: value for name, value in inherited.items() if not _is_the_case_s(name, case)}
    told = {name: variables[name] for name in sorted(variables) if name.startswith(TOLD)}
    own = {
        "PYTHONHASHSEED": str(rng.randrange(1 << 32)),
        **dict.fromkeys(THREADS, threads),
        **_chosen(case),
    }
    padding = rng.randrange(4096)
    hidden = {
        PADDING: "x" * padding,
        PARENT: str(os.getpid()),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    if case.compile_cache == "cold":
        hidden |= {name: os.path.join(cache, name.lower()) for name in CACHES}
    policies = {"wait_policy": case.wait_policy, "compile_cache": case.compile_cache}
    record = {**told, **own, **policies, "padding_bytes": padding, "cpus": cpus}
    return {**variables, **own, **hidden}, record


def _chosen(case: Case) -> dict[str, str]:
    waiting = {} if case.wait_policy == "default" else {"OMP_WAIT_POLICY": case.wait_policy}
    return {**waiting, **(PINNED if case.allocator == "pinned" else {})}


def _is_the_case_s(name: str, case: Case) -> bool:
    """The case says how memory is allocated, how threads wait, what compilers find and how many ranks there are: never
    the shell that happened to start it."""
    if case.compile_cache == "cold" and name in (*CACHES, *ONLY_WARM):
        return True
    return name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" or name in (*WAITING, *RANKS)
