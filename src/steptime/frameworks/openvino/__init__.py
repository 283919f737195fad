"""OpenVINO: inference with the ONNX model of the graph, on the CPU.

The functions import OpenVINO themselves, so that this package can be imported without it and can
say how to install it."""

from __future__ import annotations

import platform
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.core.program import Program
from steptime.graph import Work

INSTALL = "pip install 'steptime[openvino]'"
REQUIRES = ("onnx", "openvino")
OPTIONAL = ("nncf",)
MODES = ("graph",)
ONLY = {"phase": "inference", "mode": "graph", "layout": "nchw"}
TELEMETRY = "openvino_telemetry"
# Its errors are RuntimeErrors; only the text says which.
OUT_OF_MEMORY = ("bad_alloc", "Cannot allocate memory", "ailed to allocate", "out of memory")


def versions() -> dict[str, str]:
    openvino = _openvino()
    import numpy
    import onnx

    return {
        "openvino": openvino.get_version(),
        "onnx": onnx.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def unsupported(case: Case) -> str | None:
    openvino = _openvino()
    for setting, supported in ONLY.items():
        value = getattr(case, setting)
        if value != supported:
            return (
                f"{setting} {value}: OpenVINO runs a finished graph, with "
                f"{setting}={supported} only; use that."
            )
    if case.device != "cpu":
        return f"OpenVINO has no CUDA devices, so not {case.device}; use device=cpu."
    if case.precision in ("fp64", "tf32", "fp8"):
        return f"OpenVINO's CPU kernels have no {case.precision}; use precision=fp32."
    if case.precision == "int8" and not find_spec("nncf"):
        raise NotInstalled(
            "OpenVINO's quantiser NNCF is not installed; "
            "install it with: pip install 'steptime[int8]'"
        )
    # If the CPU lacks a precision, OpenVINO silently computes in fp32.
    capabilities = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if case.precision.upper() not in capabilities:
        return (
            f"This CPU has no {case.precision} instructions, according to OpenVINO's list "
            f"{', '.join(capabilities)}; use fp32."
        )
    return None


def lower(work: Work, case: Case) -> Program:
    if reason := unsupported(case) or _wrong_convolution(work):
        raise Unsupported(reason)
    if case.precision == "int8":
        from steptime.frameworks.openvino.quantised import QuantisedProgram

        return QuantisedProgram(work, case)
    from steptime.frameworks.openvino.program import OpenvinoProgram

    return OpenvinoProgram(work, case)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(sign in message for sign in OUT_OF_MEMORY)


def _wrong_convolution(work: Work) -> str | None:
    """Two bugs seen in OpenVINO 2026.4. Common networks have neither convolution.

    A padded 1×1 convolution passes its stride to the convolution before it, which then reads other
    cells. A 3×1 convolution that is dilated and padded on its narrow side ends the process."""
    for layer in work.graph:
        if layer.op.name == "conv" and _window_fits_in_padding(layer.op):
            return (
                "OpenVINO is wrong or crashes if a convolution's window can lie wholly in its "
                f"padding ({work.graph.name}, layer {layer.name!r}); use another framework."
            )
    return None


def _window_fits_in_padding(conv: Any) -> bool:
    for size, dilation, pads in zip(conv.kernel, conv.dilation, conv.padding, strict=True):
        window = (size - 1) * dilation + 1
        if max(pads) >= window:
            return True
    return False


def _openvino() -> ModuleType:
    """Import OpenVINO without its telemetry.

    The import would start a thread that reports to an analytics server. If the reporter cannot be
    imported, OpenVINO uses a stub instead. The documented way to opt out writes to the user's
    home."""
    sys.modules.setdefault(TELEMETRY, None)  # type: ignore[arg-type]
    try:
        # Without onnx no model can be built; this reports it early.
        import onnx  # noqa: F401
        import openvino
    except ImportError as problem:
        raise NotInstalled(
            f"OpenVINO cannot be imported ({problem}); install it with: {INSTALL}"
        ) from None
    return openvino
