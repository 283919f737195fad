"""The functions of the package."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.frameworks import pytorch


def reason(**settings: Any) -> str | None:
    return pytorch.unsupported(Case(workload="lenet5", **settings))


def test_versions_name_pytorch_python_and_numpy() -> None:
    assert {"pytorch", "python", "numpy"} <= pytorch.versions().keys()


def test_versions_explain_how_to_install_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(NotInstalled, match="pip install"):
        pytorch.versions()


@pytest.mark.parametrize("mode", ["graph", "session", "xla"])
def test_unsupported_rejects_modes_of_other_frameworks(mode: str) -> None:
    assert mode in str(reason(mode=mode))


def test_unsupported_rejects_cuda_features_on_the_cpu() -> None:
    assert "fp32" in str(reason(precision="tf32"))
    assert "CUDA device" in str(reason(mode="cudagraph"))
    assert "CUDA device" in str(reason(mode="compiled-cudagraph"))
    assert "use mode=compiled" in str(reason(mode="max-autotune"))


def test_unsupported_rejects_compiling_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "g++" in str(reason(mode="compiled"))


def test_unsupported_names_the_version_that_sees_no_gpu(torch: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert reason(device="cuda:0") == f"torch {torch.__version__} sees no CUDA device."


def fake_gpu(monkeypatch: pytest.MonkeyPatch, torch: Any, capability: tuple[int, int]) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)


def test_unsupported_rejects_a_gpu_that_does_not_exist(
    monkeypatch: pytest.MonkeyPatch, torch: Any
) -> None:
    fake_gpu(monkeypatch, torch, (9, 0))
    assert "sees 1 CUDA device" in str(reason(device="cuda:1"))
    assert reason(device="cuda:0", precision="tf32") is None


def test_unsupported_rejects_tf32_on_an_old_gpu(
    monkeypatch: pytest.MonkeyPatch, torch: Any
) -> None:
    fake_gpu(monkeypatch, torch, (7, 0))
    assert "7.0" in str(reason(device="cuda:0", precision="tf32"))


def test_unsupported_rejects_loss_scaling_in_a_cuda_graph(
    monkeypatch: pytest.MonkeyPatch, torch: Any
) -> None:
    fake_gpu(monkeypatch, torch, (9, 0))
    scaled = {"device": "cuda:0", "mode": "cudagraph", "precision": "fp16"}
    assert "Loss scaling" in str(reason(**scaled))
    assert reason(**scaled, phase="inference") is None


def test_lower_rejects_an_unsupported_case(work_of: Any) -> None:
    with pytest.raises(Unsupported, match="fp32"):
        pytorch.lower(work_of("residual"), Case(workload="residual", precision="tf32"))


def test_lower_rejects_nhwc_for_tokens(lower: Any) -> None:
    with pytest.raises(Unsupported, match="no images"):
        lower("sequence", layout="nhwc")


def test_is_out_of_memory_recognises_errors_of_cpu_and_cuda(torch: Any) -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert pytorch.is_out_of_memory(caught.value)
    assert pytorch.is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"))
    assert not pytorch.is_out_of_memory(RuntimeError("shapes do not match"))
