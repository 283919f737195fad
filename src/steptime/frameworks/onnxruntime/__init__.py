"""ONNX Runtime: inference with the ONNX model of the graph, on the CPU or with the CUDA provider.

The functions import ONNX Runtime themselves, so that this package can be imported without it and
can say how to install it."""

from __future__ import annotations

import platform
from pathlib import Path
from types import ModuleType

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.core.program import Program
from steptime.graph import Work

INSTALL = "pip install 'steptime[onnxruntime]'"
REQUIRES = ("onnx", "onnxruntime")
OPTIONAL = ()
MODES = ("graph",)
ONLY = {"phase": "inference", "mode": "graph", "layout": "nchw"}
NOT_ON_CPU = {
    "tf32": "tf32 is a mode of NVIDIA's matrix units; use precision=fp32.",
    "fp16": (
        "ONNX Runtime's CPU kernels compute a model in fp16 in fp32 between casts; "
        "use precision=fp32."
    ),
    "bf16": "ONNX Runtime has no bf16 kernels of convolutions on the CPU; use precision=fp32.",
    "fp8": "ONNX Runtime's CPU kernels have no fp8; use precision=int8.",
    "fp64": "ONNX Runtime has no fp64 kernels of convolutions and LSTMs; use precision=fp32.",
}
ON_CUDA = ("fp32", "tf32", "fp16")
# Its errors are plain exceptions; only the text says which.
OUT_OF_MEMORY = (
    "Failed to allocate memory",
    "bad_alloc",
    "out of memory",
    "CUDNN_STATUS_ALLOC_FAILED",
)


def versions() -> dict[str, str]:
    onnxruntime = _onnxruntime()
    import numpy
    import onnx

    return {
        "onnxruntime": onnxruntime.__version__,
        "onnx": onnx.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def unsupported(case: Case) -> str | None:
    onnxruntime = _onnxruntime()
    for setting, supported in ONLY.items():
        value = getattr(case, setting)
        if value != supported:
            return (
                f"{setting} {value}: ONNX Runtime runs a finished graph, with "
                f"{setting}={supported} only; use that."
            )
    if case.device == "cpu":
        return NOT_ON_CPU.get(case.precision)
    return _not_on_cuda(case, onnxruntime)


def lower(work: Work, case: Case) -> Program:
    if reason := unsupported(case):
        raise Unsupported(reason)
    if case.precision == "int8":
        from steptime.frameworks.onnxruntime.quantised import QuantisedProgram

        return QuantisedProgram(work, case)
    from steptime.frameworks.onnxruntime.program import OnnxruntimeProgram

    return OnnxruntimeProgram(work, case)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    from_onnxruntime = type(error).__module__.startswith("onnxruntime")
    message = str(error)
    return from_onnxruntime and any(sign in message for sign in OUT_OF_MEMORY)


def _not_on_cuda(case: Case, onnxruntime: ModuleType) -> str | None:
    version = onnxruntime.__version__
    providers = onnxruntime.get_available_providers()
    if "CUDAExecutionProvider" not in providers:
        names = ", ".join(providers)
        return f"ONNX Runtime {version} has no CUDA provider here, only {names}."
    count = _cuda_devices()
    if int(case.device.removeprefix("cuda:")) >= count:
        return (
            f"There is no {case.device}: this machine has {count} CUDA device(s), counted from 0."
        )
    if case.precision not in ON_CUDA:
        precisions = ", ".join(ON_CUDA)
        return f"ONNX Runtime's CUDA provider has {precisions}, not {case.precision}; use those."
    return None


def _cuda_devices() -> int:
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def _onnxruntime() -> ModuleType:
    try:
        # Without onnx no model can be built; this reports it early.
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError as problem:
        raise NotInstalled(
            f"ONNX Runtime cannot be imported ({problem}); install it with: {INSTALL}"
        ) from None
    return onnxruntime
