from __future__ import annotations

import os

import pytest

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run.local.environment import CACHES, PINNED, THREADS, worker_environment


def job(name: str = "a", **settings: object) -> Job:
    case = Case(workload="mnist-mlp", **settings)  # type: ignore[arg-type]
    return Job(id=name, session="s", plan="p", process=0, case=case, protocol=Protocol())


def test_hash_seed_and_padding_are_random_and_recorded() -> None:
    told = [worker_environment(job(str(number)), {})[1] for number in range(20)]
    assert (
        len({one["PYTHONHASHSEED"] for one in told})
        == len({one["padding_bytes"] for one in told})
        == 20
    )
    assert all(0 <= one["padding_bytes"] < 4096 for one in told)


def test_facts_agree_with_the_variables() -> None:
    variables, told = worker_environment(job(threads=3), {"PATH": "/bin"})
    assert len(variables["STEPTIME_PADDING"]) == told["padding_bytes"]
    assert variables["PATH"] == "/bin" and "PATH" not in told
    for name in ("PYTHONHASHSEED", "MALLOC_TOP_PAD_"):
        assert variables[name] == told[name]
    assert variables["OMP_NUM_THREADS"] == variables["MKL_NUM_THREADS"] == "3"


def test_threads_default_to_every_allowed_cpu() -> None:
    assert worker_environment(job(), {})[0]["OMP_NUM_THREADS"] == str(len(os.sched_getaffinity(0)))


def test_allocator_is_set_by_the_case_alone() -> None:
    shell = {"MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    pinned, stock = (
        worker_environment(job(allocator=word), shell)[0] for word in ("pinned", "stock")
    )
    assert PINNED.items() <= pinned.items()
    assert not any(name.startswith(("MALLOC_", "GLIBC_")) for name in stock)
    assert "MALLOC_ARENA_MAX" not in pinned


def test_facts_have_library_settings_and_no_secrets() -> None:
    shell = {
        "CUDA_VISIBLE_DEVICES": "1",
        "TF_XLA_FLAGS": "x",
        "WANDB_API_KEY": "secret",
        "HF_TOKEN": "secret",
    }
    variables, told = worker_environment(job(), shell)
    assert variables["HF_TOKEN"] == "secret" and "secret" not in str(told)
    assert (told["CUDA_VISIBLE_DEVICES"], told["TF_XLA_FLAGS"]) == ("1", "x")


@pytest.mark.parametrize(
    ("policy", "variable"), [("default", None), ("active", "active"), ("passive", "passive")]
)
def test_wait_policy_is_set_by_the_case_alone(policy: str, variable: str | None) -> None:
    shell = {"OMP_WAIT_POLICY": "active", "KMP_BLOCKTIME": "0", "GOMP_SPINCOUNT": "9"}
    variables, told = worker_environment(job(wait_policy=policy), shell)
    assert variables.get("OMP_WAIT_POLICY") == variable == told.get("OMP_WAIT_POLICY")
    assert told["wait_policy"] == policy and not {"KMP_BLOCKTIME", "GOMP_SPINCOUNT"} & {
        *variables,
        *told,
    }


def test_warm_cache_is_inherited() -> None:
    shell = {"TORCHINDUCTOR_CACHE_DIR": "/mine", "JAX_COMPILATION_CACHE_DIR": "/mine"}
    variables, told = worker_environment(job(), shell)
    assert shell.items() <= variables.items() and shell.items() <= told.items()
    assert told["compile_cache"] == "warm"


def test_cold_cache_is_an_empty_folder_and_recorded() -> None:
    shell = {"TORCHINDUCTOR_CACHE_DIR": "/mine", "JAX_COMPILATION_CACHE_DIR": "/mine"}
    variables, told = worker_environment(job(compile_cache="cold"), shell, "/fresh")
    assert all(variables[name].startswith("/fresh/") for name in CACHES)
    assert "JAX_COMPILATION_CACHE_DIR" not in variables
    assert (
        told["compile_cache"] == "cold" and "/mine" not in str(told) and "/fresh" not in str(told)
    )


def test_facts_have_the_threads_of_every_library() -> None:
    told = worker_environment(job(threads=3), {"OMP_NUM_THREADS": "7"})[1]
    assert {told[name] for name in THREADS} == {"3"}


def test_threads_share_the_cpus_of_a_node() -> None:
    found = worker_environment(job(exchange="allreduce", devices=2), {})[1]["OMP_NUM_THREADS"]
    assert found == str(max(1, len(os.sched_getaffinity(0)) // 2))


def test_variables_of_another_launcher_are_removed() -> None:
    shell = {"RANK": "3", "WORLD_SIZE": "8", "OMPI_COMM_WORLD_SIZE": "8", "SLURM_JOB_ID": "7"}
    assert shell.items() & worker_environment(job(exchange="allreduce", devices=2), shell)[
        0
    ].items() == {("SLURM_JOB_ID", "7")}
