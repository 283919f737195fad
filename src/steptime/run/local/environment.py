"""The environment variables of one worker: randomised, fixed by the case, or inherited."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.ranks import STARTERS
from steptime.core.secrets import is_secret_name
from steptime.machine.leftovers import VARIABLE as ATTEMPT
from steptime.run.local.variables import LIBRARIES, RECORDED

PADDING = "STEPTIME_PADDING"
PARENT = "STEPTIME_PARENT"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Large tensors come from the heap and stay there, so a step does not fault its pages in anew
# (METHOD.md).
PINNED = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
# How threads wait for work: OpenMP's variable, and those by which its libraries overrule it.
WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
# Set by a launcher around steptime. A worker that inherits them would take itself for one of that
# launcher's ranks. Slurm's stay, because srun needs them.
RANKS = tuple(name for names in STARTERS for name in names if not name.startswith("SLURM_"))
# Where compilers keep their output. JAX keeps nothing unless it gets a folder, so a cold one gets
# none.
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
ONLY_WARM = ("JAX_COMPILATION_CACHE_DIR",)


class WorkerEnvironment(NamedTuple):
    variables: dict[str, str]
    facts: dict[str, Any]  # what of it goes into the record


def worker_environment(
    job: Job, inherited: Mapping[str, str], cache: str = ""
) -> WorkerEnvironment:
    """The job's id seeds what is randomised.

    `cache` is an empty folder, for a case whose compilers start cold."""
    rng = random.Random(job.id)
    case = job.case
    cpus = sorted(os.sched_getaffinity(0))  # of this process, and so of its workers
    variables = {
        name: value for name, value in inherited.items() if not _is_set_by_case(name, case)
    }
    facts: dict[str, Any] = {
        name: variables[name] for name in sorted(variables) if name in RECORDED
    }
    fixed = {"PYTHONHASHSEED": str(rng.randrange(1 << 32))}
    fixed |= dict.fromkeys(THREADS, str(case.threads_of(len(cpus))))
    fixed |= _case_variables(case)
    # The size of the environment shifts the stack, which can change speed by a few per cent.
    padding = rng.randrange(4096)
    unrecorded = {
        PADDING: "x" * padding,
        PARENT: str(os.getpid()),
        ATTEMPT: job.id,
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    if case.compile_cache == "cold":
        unrecorded |= {name: os.path.join(cache, name.lower()) for name in CACHES}
    facts |= fixed
    if names := _unrecorded_names(variables):
        facts["unrecorded"] = names
    facts |= {"wait_policy": case.wait_policy, "compile_cache": case.compile_cache}
    facts |= {"padding_bytes": padding, "cpus": cpus}
    return WorkerEnvironment(variables | fixed | unrecorded, facts)


def _unrecorded_names(variables: Mapping[str, str]) -> str:
    """Variables of known libraries that are in no list: they may matter, or hold a secret."""
    names = []
    for name in sorted(variables):
        is_listed = name in RECORDED or name in THREADS
        if name.startswith(LIBRARIES) and not is_listed and not is_secret_name(name):
            names.append(name)
    return " ".join(names)


def _case_variables(case: Case) -> dict[str, str]:
    variables: dict[str, str] = {}
    if case.wait_policy != "default":
        variables["OMP_WAIT_POLICY"] = case.wait_policy
    if case.allocator == "pinned":
        variables |= PINNED
    return variables


def _is_set_by_case(name: str, case: Case) -> bool:
    """Whether the case alone decides this, never the shell that happened to start steptime.

    It decides how memory is allocated, how threads wait, what compilers find and how many ranks
    there are."""
    if case.compile_cache == "cold" and name in (*CACHES, *ONLY_WARM):
        return True
    if name.startswith("MALLOC_") or name == "GLIBC_TUNABLES":
        return True
    return name in WAIT_VARIABLES or name in RANKS
