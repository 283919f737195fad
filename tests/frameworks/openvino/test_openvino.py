"""The functions of the package itself."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.data.synthetic import synthetic_batch
from steptime.frameworks import openvino as framework
from steptime.graph import Net, Work, sgd
from steptime.graph.weights import initial_weights


def case(**settings: Any) -> Case:
    defaults = {"framework": "openvino", "phase": "inference", "mode": "graph"}
    return Case(workload="lenet5", **{**defaults, **settings})


def reason(**settings: Any) -> str | None:
    return framework.unsupported(case(**settings))


def test_versions_include_the_framework_and_its_packages() -> None:
    assert {"openvino", "onnx", "python", "numpy"} <= framework.versions().keys()


@pytest.mark.parametrize("package", ["openvino", "onnx"])
def test_versions_without_a_package_say_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalled, match="pip install"):
        framework.versions()


def test_unsupported_allows_inference_on_the_cpu() -> None:
    assert reason() is None


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ({"phase": "training"}, "phase=inference"),
        ({"phase": "forward"}, "phase=inference"),
        ({"mode": "eager"}, "mode=graph"),
        ({"layout": "nhwc"}, "layout=nchw"),
        ({"device": "cuda:0"}, "device=cpu"),
        ({"precision": "fp64"}, "precision=fp32"),
        ({"precision": "tf32"}, "precision=fp32"),
    ],
)
def test_unsupported_names_an_alternative(setting: dict[str, str], hint: str) -> None:
    assert hint in str(reason(**setting))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_unsupported_refuses_a_precision_that_the_cpu_lacks(openvino: Any, precision: str) -> None:
    has = precision.upper() in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    assert (reason(precision=precision) is None) is has


@pytest.mark.parametrize(
    ("kernel", "padding", "dilation", "refused"),
    [(1, 1, 1, True), (3, 3, 1, True), (3, 3, 2, False), (1, 0, 1, False)],
)
def test_lower_refuses_a_window_that_fits_in_its_padding(
    kernel: int, padding: int, dilation: int, refused: bool
) -> None:
    net = Net("tiny")
    graph = net.graph(net.conv(net.input(2, 6, 6), 2, kernel, padding=padding, dilation=dilation))
    work = Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 4, 0), sgd())
    with pytest.raises(Unsupported, match="conv1") if refused else nullcontext():
        framework.lower(work, case(batch_size=4))


def test_import_starts_no_telemetry_and_writes_nothing(tmp_path: Path) -> None:
    code = """
import sys, threading
from steptime.frameworks import openvino
openvino.versions()
telemetry = [name for name in sys.modules if name.startswith("openvino_telemetry")]
loaded = [name for name in telemetry if sys.modules[name]]
print(loaded, threading.active_count())
"""
    environment = {"HOME": str(tmp_path), "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[] 1"
    assert list(tmp_path.iterdir()) == []


def test_is_out_of_memory_recognises_allocation_failures() -> None:
    assert framework.is_out_of_memory(RuntimeError("Check failed: std::bad_alloc"))
    assert not framework.is_out_of_memory(RuntimeError("shapes do not match"))
