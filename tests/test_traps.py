"""Traps that involve several areas, so that no single area can test them. See docs/traps.md."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run.local.environment import CACHES, worker_environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TRAPS = (ROOT / "docs" / "traps.md").read_text(encoding="utf-8")
LOWERED = """
import os, socket, sys, threading
from pathlib import Path
from steptime.core.case import Case
from steptime.frameworks import openvino
from steptime.workloads import supervised

def refuse(*_):
    raise AssertionError("a connection was tried")

socket.socket.connect = refuse
case = Case(workload="lenet5", framework="openvino", phase="inference", mode="graph", batch_size=1)
openvino.lower(supervised.build(case), case).step()
children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
telemetry = [name for name in sys.modules if name.startswith("openvino_telemetry")]
print([name for name in telemetry if sys.modules[name]], children)
"""


def environment(**settings: object) -> dict[str, str]:
    case = Case(workload="lenet5", **settings)  # type: ignore[arg-type]
    job = Job(id="x", session="s", plan="p", process=0, case=case, protocol=Protocol())
    return worker_environment(job, os.environ, "/nowhere")[0]


def output_of(code: str, variables: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize(
    "test", re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TRAPS), ids=lambda test: test[1]
)
def test_traps_page_names_existing_tests(test: tuple[str, str]) -> None:
    path, name = test
    assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_openvino_reads_model_without_child_or_file(
    tmp_path: Path,
) -> None:
    needs("openvino"), needs("onnx")
    variables = {"HOME": str(tmp_path), "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    assert output_of(LOWERED, variables).strip().endswith("[] []")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("policy", "expected"), [("active", "ACTIVE"), ("passive", "PASSIVE")])
def test_openmp_follows_wait_policy(policy: str, expected: str) -> None:
    needs("torch")
    shell = {**environment(wait_policy=policy), "OMP_DISPLAY_ENV": "true"}
    shown = output_of("import torch; torch.set_num_threads(2)", shell)
    if "OMP_WAIT_POLICY" not in shown:
        pytest.skip("this torch has another OpenMP library than GNU's")
    assert f"OMP_WAIT_POLICY = '{expected}'" in shown


def test_cold_pytorch_compiler_writes_into_fresh_folder() -> None:
    needs("torch")
    code = "from torch._inductor.runtime.cache_dir_utils import cache_dir; print(cache_dir())"
    variables = environment(compile_cache="cold")
    assert output_of(code, variables).strip().endswith(variables["TORCHINDUCTOR_CACHE_DIR"])
    assert set(CACHES) <= variables.keys()


def test_thread_count_may_change_kernels_and_record_shows_it() -> None:
    needs("torch")
    from steptime.frameworks import pytorch
    from steptime.workloads import supervised

    for threads in (1, 2):
        case = Case(workload="lenet5", phase="inference", batch_size=1, threads=threads)
        program = pytorch.lower(supervised.build(case), case)
        program.step()
        assert sum(count for name, count in program.kernels().items() if "conv" in name) >= 2
        assert program.facts()["threads"] == threads
