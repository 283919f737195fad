"""The functions of the package itself."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.frameworks import onnxruntime as framework


def reason(**settings: Any) -> str | None:
    defaults = {"framework": "onnxruntime", "phase": "inference", "mode": "graph"}
    return framework.unsupported(Case(workload="lenet5", **{**defaults, **settings}))


def test_versions_include_the_framework_and_its_packages() -> None:
    assert {"onnxruntime", "onnx", "python", "numpy"} <= framework.versions().keys()


@pytest.mark.parametrize("package", ["onnxruntime", "onnx"])
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
        ({"precision": "fp16"}, "casts"),
        ({"precision": "bf16"}, "no bf16 kernels"),
        ({"precision": "fp64"}, "no fp64 kernels"),
        ({"precision": "tf32"}, "precision=fp32"),
    ],
)
def test_unsupported_names_an_alternative(setting: dict[str, str], hint: str) -> None:
    assert hint in str(reason(**setting))


def test_unsupported_reports_a_missing_cuda_provider(onnxruntime: Any) -> None:
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this machine has the CUDA provider")
    message = str(reason(device="cuda:0"))
    assert "only" in message and "CPUExecutionProvider" in message


def test_unsupported_checks_precision_and_index_on_cuda(
    monkeypatch: pytest.MonkeyPatch, onnxruntime: Any
) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(framework, "_cuda_devices", lambda: 1)
    assert reason(device="cuda:0", precision="tf32") is None
    assert "fp16" in str(reason(device="cuda:0", precision="bf16"))
    assert "has 1 CUDA device" in str(reason(device="cuda:1"))


def test_lower_refuses_an_unsupported_case(lower: Any) -> None:
    with pytest.raises(Unsupported, match="fp64"):
        lower("images", precision="fp64")


def test_is_out_of_memory_recognises_only_its_own_errors(onnxruntime: Any) -> None:
    failed = onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException
    assert framework.is_out_of_memory(
        failed("bfc_arena: Failed to allocate memory for requested buffer")
    )
    assert not framework.is_out_of_memory(failed("shapes do not match"))
    assert not framework.is_out_of_memory(ValueError("Failed to allocate memory"))
