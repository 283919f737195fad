"""The functions of the package itself."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.frameworks import onnxruntime as framework


def reason(**settings: Any) -> str | None:
    own = {"framework": "onnxruntime", "phase": "inference", "mode": "graph"}
    return framework.unsupported(Case(workload="lenet5", **{**own, **settings}))


def test_versions_name_the_framework_and_its_surroundings() -> None:
    assert {"onnxruntime", "onnx", "python", "numpy"} <= framework.versions().keys()


@pytest.mark.parametrize("package", ["onnxruntime", "onnx"])
def test_without_a_package_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalled, match="pip install"):
        framework.versions()


def test_inference_of_the_graph_on_the_cpu_is_supported() -> None:
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
def test_what_it_can_not_do_is_a_reason_with_a_way_out(setting: dict[str, str], hint: str) -> None:
    assert hint in str(reason(**setting))


def test_a_missing_gpu_is_told_with_what_was_found(onnxruntime: Any) -> None:
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this machine has the CUDA provider")
    assert "only" in str(reason(device="cuda:0")) and "CPUExecutionProvider" in str(
        reason(device="cuda:0")
    )


def test_the_cuda_provider_has_its_own_precisions(
    monkeypatch: pytest.MonkeyPatch, onnxruntime: Any
) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(framework, "_cuda_devices", lambda: 1)
    assert reason(device="cuda:0", precision="tf32") is None
    assert "fp16" in str(reason(device="cuda:0", precision="bf16"))
    assert "has 1 CUDA device" in str(reason(device="cuda:1"))


def test_an_unsupported_case_is_not_lowered(lower: Any) -> None:
    with pytest.raises(Unsupported, match="fp64"):
        lower("images", precision="fp64")


def test_only_its_own_lack_of_memory_is_one(onnxruntime: Any) -> None:
    failed = onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException
    assert framework.is_out_of_memory(
        failed("bfc_arena: Failed to allocate memory for requested buffer")
    )
    assert not framework.is_out_of_memory(failed("shapes do not match"))
    assert not framework.is_out_of_memory(ValueError("Failed to allocate memory"))
