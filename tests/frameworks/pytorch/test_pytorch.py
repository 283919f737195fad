"""The folder's own functions."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.frameworks import pytorch


def reason(**settings: Any) -> str | None:
    return pytorch.unsupported(Case(workload="lenet5", **settings))


def test_versions_name_the_framework_and_its_surroundings() -> None:
    assert {"pytorch", "python", "numpy"} <= pytorch.versions().keys()


def test_without_pytorch_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(NotInstalled, match="pip install"):
        pytorch.versions()


@pytest.mark.parametrize("mode", ["graph", "session", "xla"])
def test_other_frameworks_modes_are_refused(mode: str) -> None:
    assert mode in str(reason(mode=mode))


def test_what_only_cuda_has_is_refused_on_the_cpu() -> None:
    assert "fp32" in str(reason(precision="tf32"))
    assert "CUDA device" in str(reason(mode="cudagraph"))


def test_compiling_without_a_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "g++" in str(reason(mode="compiled"))


def test_a_missing_gpu_is_told_with_what_was_found(torch: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert reason(device="cuda:0") == f"torch {torch.__version__} sees no CUDA device."


def fake_gpu(monkeypatch: pytest.MonkeyPatch, torch: Any, capability: tuple[int, int]) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)


def test_a_gpu_beyond_the_last_is_refused(monkeypatch: pytest.MonkeyPatch, torch: Any) -> None:
    fake_gpu(monkeypatch, torch, (9, 0))
    assert "sees 1 CUDA device" in str(reason(device="cuda:1"))
    assert reason(device="cuda:0", precision="tf32") is None


def test_an_old_gpu_has_no_tf32(monkeypatch: pytest.MonkeyPatch, torch: Any) -> None:
    fake_gpu(monkeypatch, torch, (7, 0))
    assert "7.0" in str(reason(device="cuda:0", precision="tf32"))


def test_loss_scaling_can_not_be_replayed(monkeypatch: pytest.MonkeyPatch, torch: Any) -> None:
    fake_gpu(monkeypatch, torch, (9, 0))
    scaled = {"device": "cuda:0", "mode": "cudagraph", "precision": "fp16"}
    assert "Loss scaling" in str(reason(**scaled))
    assert reason(**scaled, phase="inference") is None


def test_an_unsupported_case_is_not_lowered(work_of: Any) -> None:
    with pytest.raises(Unsupported, match="fp32"):
        pytorch.lower(work_of("residual"), Case(workload="residual", precision="tf32"))


def test_a_layout_of_images_is_refused_for_tokens(lower: Any) -> None:
    with pytest.raises(Unsupported, match="no images"):
        lower("sequence", layout="nhwc")


def test_running_out_of_memory_is_recognised(torch: Any) -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert pytorch.is_out_of_memory(caught.value)
    assert pytorch.is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"))
    assert not pytorch.is_out_of_memory(RuntimeError("shapes do not match"))
