"""The functions of the package itself."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.frameworks import jax as folder


def reason(**settings: Any) -> str | None:
    return folder.unsupported(
        Case(workload="lenet5", framework="jax", **{"mode": "compiled", **settings})
    )


def test_versions_include_the_framework_and_its_packages() -> None:
    assert {"jax", "jaxlib", "optax", "python", "numpy"} <= folder.versions().keys()


def test_versions_without_jax_say_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(NotInstalled, match="pip install"):
        folder.versions()


def test_unsupported_refuses_eager_and_names_compiled() -> None:
    assert "mode=compiled" in str(reason(mode="eager"))


@pytest.mark.parametrize("mode", ["cudagraph", "graph", "session", "xla"])
def test_unsupported_refuses_modes_of_other_frameworks(mode: str) -> None:
    assert mode in str(reason(mode=mode))


def test_unsupported_refuses_tf32_on_the_cpu() -> None:
    assert "fp32" in str(reason(precision="tf32"))


def test_unsupported_refuses_more_threads_than_cpus() -> None:
    cpus = len(os.sched_getaffinity(0))
    assert str(cpus) in str(reason(threads=cpus + 1))
    assert reason(threads=cpus) is None


def test_unsupported_reports_a_missing_gpu(jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(platform: str) -> Any:
        raise RuntimeError(f"Unknown backend {platform}")

    monkeypatch.setattr(jax, "devices", absent)
    assert reason(device="cuda:0") == f"jax {jax.__version__} sees no CUDA device."


def fake_gpu(monkeypatch: pytest.MonkeyPatch, jax: Any, capability: str) -> None:
    monkeypatch.setattr(
        jax, "devices", lambda platform: [SimpleNamespace(compute_capability=capability)]
    )


def test_unsupported_refuses_a_gpu_index_out_of_range(
    monkeypatch: pytest.MonkeyPatch, jax: Any
) -> None:
    fake_gpu(monkeypatch, jax, "9.0")
    assert "sees 1 CUDA device" in str(reason(device="cuda:1"))
    assert reason(device="cuda:0", precision="tf32") is None


def test_unsupported_refuses_tf32_on_an_old_gpu(monkeypatch: pytest.MonkeyPatch, jax: Any) -> None:
    fake_gpu(monkeypatch, jax, "7.0")
    assert "7.0" in str(reason(device="cuda:0", precision="tf32"))


def test_lower_refuses_an_unsupported_case(work_of: Any) -> None:
    with pytest.raises(Unsupported, match="fp32"):
        folder.lower(
            work_of("residual"), Case(workload="residual", mode="compiled", precision="tf32")
        )


def test_lower_refuses_nhwc_for_tokens(lower: Any) -> None:
    with pytest.raises(Unsupported, match="no images"):
        lower("sequence", layout="nhwc")


def test_is_out_of_memory_recognises_jax_errors(jax: Any) -> None:
    with pytest.raises(RuntimeError) as caught:
        jax.numpy.zeros(2**48)
    assert folder.is_out_of_memory(caught.value)
    assert not folder.is_out_of_memory(RuntimeError("shapes do not match"))
