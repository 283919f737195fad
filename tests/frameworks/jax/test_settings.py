from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from steptime.core.case import Case


def case(**settings: Any) -> Case:
    return Case(workload="lenet5", framework="jax", mode="compiled", **settings)


@pytest.fixture
def settings() -> Any:
    from steptime.frameworks.jax import settings

    return settings


PINNED = """
from steptime.core.case import Case
from steptime.frameworks.jax import settings
case = Case(workload="lenet5", framework="jax", mode="compiled", threads=1)
facts = settings.facts(case, settings.apply(case))
print(facts["threads"], facts["pool_threads"])
"""


def test_apply_sets_the_threads_of_the_case() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PINNED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]


def test_apply_defaults_to_one_thread_per_usable_cpu(settings: Any) -> None:
    settings.apply(case())
    assert settings.pool_threads() == len(os.sched_getaffinity(0))


def test_apply_enables_64_bit_numbers_only_for_fp64(settings: Any, jax: Any) -> None:
    settings.apply(case(precision="fp64"))
    assert jax.config.jax_enable_x64
    settings.apply(case())
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_apply_makes_products_exact_by_default(settings: Any, jax: Any, precision: str) -> None:
    settings.apply(case(precision=precision))
    assert jax.config.jax_default_matmul_precision == "highest"


def test_stored_dtype_is_low_only_in_inference(settings: Any) -> None:
    assert settings.stored_dtype(case(precision="bf16")) == "float32"
    assert settings.stored_dtype(case(precision="bf16", phase="forward")) == "float32"
    assert settings.stored_dtype(case(precision="bf16", phase="inference")) == "bfloat16"
    assert settings.stored_dtype(case(precision="fp64")) == "float64"
