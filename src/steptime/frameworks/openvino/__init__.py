"""OpenVINO: inference from the graph's own ONNX model, on the CPU.

OpenVINO itself is imported by the functions, so that the folder can be asked how to install it where it is missing."""

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
    for setting, word in ONLY.items():
        found = getattr(case, setting)
        if found != word:
            return f"{setting} {found}: OpenVINO runs a finished graph, with {setting}={word} only; use that."
    if case.device != "cpu":
        return f"OpenVINO has no CUDA devices, so not {case.device}; use device=cpu."
    if case.precision in ("fp64", "tf32", "fp8"):
        return f"OpenVINO's CPU kernels have no {case.precision}; use precision=fp32."
    if case.precision == "int8" and not find_spec("nncf"):
        raise NotInstalled(
            "OpenVINO's quantiser NNCF is not installed; install it with: pip install 'steptime[int8]'"
        )
    # Asked for what the CPU lacks, OpenVINO computes in fp32 without a word.
    known = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if case.precision.upper() not in known:
        return f"This CPU has no {case.precision} instructions, by OpenVINO's list {', '.join(known)}; use fp32."
    return None


def lower(work: Work, case: Case) -> Program:
    if reason := unsupported(case) or _beyond_its_kernels(work):
        raise Unsupported(reason)
    if case.precision == "int8":
        from steptime.frameworks.openvino.quantised import QuantisedProgram

        return QuantisedProgram(work, case)
    from steptime.frameworks.openvino.program import OpenvinoProgram

    return OpenvinoProgram(work, case)


def is_out_of_memory(error: BaseException) -> bool:
    signs = ("bad_alloc", "Cannot allocate memory", "ailed to allocate", "out of memory")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)
    )


def _beyond_its_kernels(work: Work) -> str | None:
    """Seen in OpenVINO 2026.4: a padded 1×1 convolution gives its stride to the one before it, which moves the cells
    that it reads; a 3×1 one, dilated and padded on its narrow side, ends the process. Common networks have neither."""
    for layer in work.graph:
        if layer.op.name == "conv" and _looks_past_the_image(layer.op):
            return (
                f"OpenVINO is wrong or crashes where a convolution's window can lie wholly in its padding "
                f"({work.graph.name}, layer {layer.name!r}); use another framework."
            )
    return None


def _looks_past_the_image(conv: Any) -> bool:
    reach = [
        (size - 1) * dilation + 1 for size, dilation in zip(conv.kernel, conv.dilation, strict=True)
    ]
    return any(max(pads) >= cells for cells, pads in zip(reach, conv.padding, strict=True))


def _openvino() -> ModuleType:
    """Its import would start a thread that reports to an analytics server, unless the reporter cannot be imported:
    then a stub of its own takes the place. The documented way out writes to the user's home, which is not ours."""
    sys.modules.setdefault(TELEMETRY, None)  # type: ignore[arg-type]
    try:
        import onnx  # noqa: F401  # its absence should be told before anything is built
        import openvino
    except ImportError as problem:
        raise NotInstalled(
            f"OpenVINO cannot be imported here ({problem}); install it with: {INSTALL}"
        ) from None
    return openvino
