from __future__ import annotations

import os

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.executors.local.environment import PINNED, for_job


def job(name: str = "a", **settings: object) -> Job:
    case = Case(workload="mnist-mlp", **settings)  # type: ignore[arg-type]
    return Job(id=name, session="s", plan="p", process=0, case=case, protocol=Protocol())


def test_hash_seed_and_padding_differ_between_processes_and_are_told() -> None:
    told = [for_job(job(str(number)), {})[1] for number in range(20)]
    assert len({one["PYTHONHASHSEED"] for one in told}) == len({one["padding_bytes"] for one in told}) == 20
    assert all(0 <= one["padding_bytes"] < 4096 for one in told)


def test_what_is_told_is_what_is_set() -> None:
    variables, told = for_job(job(threads=3), {"PATH": "/bin"})
    assert len(variables["STEPTIME_PADDING"]) == told["padding_bytes"]
    assert variables["PATH"] == "/bin" and "PATH" not in told
    for name in ("PYTHONHASHSEED", "MALLOC_TOP_PAD_"):
        assert variables[name] == told[name]
    assert variables["OMP_NUM_THREADS"] == variables["MKL_NUM_THREADS"] == "3"


def test_no_number_of_threads_means_every_cpu_that_may_be_used() -> None:
    assert for_job(job(), {})[0]["OMP_NUM_THREADS"] == str(len(os.sched_getaffinity(0)))


def test_the_allocator_profile_is_the_case_s_and_not_the_shell_s() -> None:
    shell = {"MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    pinned, stock = (for_job(job(allocator=word), shell)[0] for word in ("pinned", "stock"))
    assert PINNED.items() <= pinned.items()
    assert not any(name.startswith(("MALLOC_", "GLIBC_")) for name in stock)
    assert "MALLOC_ARENA_MAX" not in pinned


def test_settings_of_libraries_are_told_and_secrets_are_not() -> None:
    shell = {"CUDA_VISIBLE_DEVICES": "1", "OMP_WAIT_POLICY": "active", "WANDB_API_KEY": "secret", "HF_TOKEN": "secret"}
    variables, told = for_job(job(), shell)
    assert variables["HF_TOKEN"] == "secret" and "secret" not in str(told)
    assert (told["CUDA_VISIBLE_DEVICES"], told["wait_policy"]) == ("1", "active")
