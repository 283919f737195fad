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


def test_threads_are_what_the_case_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PINNED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]


def test_without_a_number_every_cpu_that_may_be_used_has_a_thread(settings: Any) -> None:
    settings.apply(case())
    assert settings.pool_threads() == len(os.sched_getaffinity(0))


def test_64_bit_numbers_are_on_only_where_they_are_asked_for(settings: Any, jax: Any) -> None:
    settings.apply(case(precision="fp64"))
    assert jax.config.jax_enable_x64
    settings.apply(case())
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_products_are_exact_unless_something_else_is_asked_for(
    settings: Any, jax: Any, precision: str
) -> None:
    settings.apply(case(precision=precision))
    assert jax.config.jax_default_matmul_precision == "highest"


def test_only_inference_stores_weights_in_a_lower_precision(settings: Any) -> None:
    assert settings.stored_dtype(case(precision="bf16")) == "float32"
    assert settings.stored_dtype(case(precision="bf16", phase="forward")) == "float32"
    assert settings.stored_dtype(case(precision="bf16", phase="inference")) == "bfloat16"
    assert settings.stored_dtype(case(precision="fp64")) == "float64"
