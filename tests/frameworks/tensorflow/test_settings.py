from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError


def case(**settings: Any) -> Case:
    return Case(workload="lenet5", framework="tensorflow", mode="graph", **settings)


@pytest.fixture
def settings() -> Any:
    from steptime.frameworks.tensorflow import settings

    return settings


ONE_THREAD = """
from steptime.core.case import Case
from steptime.frameworks import tensorflow as folder
case = Case(workload="lenet5", framework="tensorflow", mode="graph", threads=1)
folder.unsupported(case)
from steptime.frameworks.tensorflow import settings
settings.apply(case)
print(settings.facts(case)["threads"], settings.facts(case)["threads_between_operations"])
"""


def test_threads_are_what_the_case_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE_THREAD], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]


def test_without_a_number_every_cpu_that_may_be_used_has_a_thread(settings: Any) -> None:
    settings.apply(case())
    assert settings.facts(case())["threads"] == len(os.sched_getaffinity(0))


def test_other_threads_than_those_that_run_are_refused(settings: Any, tensorflow: Any) -> None:
    settings.apply(case())
    tensorflow.zeros(1)
    with pytest.raises(SteptimeError, match="process of its own"):
        settings.apply(case(threads=len(os.sched_getaffinity(0)) + 1))


def test_only_inference_stores_weights_in_a_lower_precision(settings: Any) -> None:
    assert settings.stored_dtype(case(precision="bf16")).name == "float32"
    assert settings.stored_dtype(case(precision="bf16", phase="forward")).name == "float32"
    assert settings.stored_dtype(case(precision="bf16", phase="inference")).name == "bfloat16"
    assert settings.stored_dtype(case(precision="fp64")).name == "float64"


def test_facts_tell_onednn_the_layout_and_how_it_was_executed(settings: Any) -> None:
    facts = settings.facts(case())
    assert (facts["onednn"], facts["layout"], facts["executed"], facts["jit"]) == (
        "1",
        "nhwc",
        "tf.function",
        False,
    )
