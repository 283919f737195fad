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
print(settings.facts(case)["threads"], settings.facts(case)["interop_threads"])
"""


def test_apply_sets_the_threads_of_the_case() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE_THREAD], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]


def test_apply_defaults_to_one_thread_per_usable_cpu(settings: Any) -> None:
    settings.apply(case())
    assert settings.facts(case())["threads"] == len(os.sched_getaffinity(0))


def test_apply_refuses_to_change_running_threads(settings: Any, tensorflow: Any) -> None:
    settings.apply(case())
    tensorflow.zeros(1)
    with pytest.raises(SteptimeError, match="start another process"):
        settings.apply(case(threads=len(os.sched_getaffinity(0)) + 1))


def test_stored_dtype_is_low_only_in_inference(settings: Any) -> None:
    assert settings.stored_dtype(case(precision="bf16")).name == "float32"
    assert settings.stored_dtype(case(precision="bf16", phase="forward")).name == "float32"
    assert settings.stored_dtype(case(precision="bf16", phase="inference")).name == "bfloat16"
    assert settings.stored_dtype(case(precision="fp64")).name == "float64"


def test_facts_report_onednn_layout_and_execution(settings: Any) -> None:
    facts = settings.facts(case())
    assert facts["onednn"] == "1"
    assert facts["layout"] == "nhwc"
    assert facts["executed"] == "tf.function"
    assert not facts["jit"]
