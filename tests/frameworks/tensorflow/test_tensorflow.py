"""The functions of the package itself."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.frameworks import tensorflow as folder


def reason(**settings: Any) -> str | None:
    return folder.unsupported(
        Case(workload="lenet5", framework="tensorflow", **{"mode": "graph", **settings})
    )


def test_versions_include_the_framework_and_its_packages() -> None:
    assert {"tensorflow", "python", "numpy", "compiler"} <= folder.versions().keys()


def test_versions_without_tensorflow_say_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(NotInstalled, match="pip install"):
        folder.versions()


@pytest.mark.parametrize("mode", folder.MODES)
@pytest.mark.parametrize("phase", ["training", "inference", "forward"])
def test_unsupported_allows_every_phase_in_every_mode(mode: str, phase: str) -> None:
    assert reason(mode=mode, phase=phase) is None


@pytest.mark.parametrize("mode", ["compiled", "cudagraph"])
def test_unsupported_refuses_modes_of_other_frameworks(mode: str) -> None:
    assert mode in str(reason(mode=mode))


@pytest.mark.parametrize("precision", ["tf32", "fp8", "int8"])
def test_unsupported_refuses_missing_precisions_and_names_others(precision: str) -> None:
    assert precision in str(reason(precision=precision)) and "fp32" in str(
        reason(precision=precision)
    )


def test_lower_refuses_an_unsupported_case(work_of: Any) -> None:
    with pytest.raises(Unsupported, match="fp32"):
        folder.lower(work_of("residual"), Case(workload="residual", mode="graph", precision="tf32"))


def test_lower_refuses_nhwc_for_tokens(lower: Any) -> None:
    with pytest.raises(Unsupported, match="no images"):
        lower("sequence", layout="nhwc")


def test_is_out_of_memory_recognises_tensorflow_errors(tensorflow: Any) -> None:
    """Made by hand: TensorFlow waits ten seconds for memory before it gives up."""
    message = "OOM when allocating tensor with shape[281474976710656] and type float"
    assert folder.is_out_of_memory(tensorflow.errors.ResourceExhaustedError(None, None, message))
    assert not folder.is_out_of_memory(RuntimeError("shapes do not match"))
