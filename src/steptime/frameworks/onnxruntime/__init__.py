"""ONNX Runtime: inference from the graph's own ONNX model, on the CPU or through the CUDA provider.

ONNX Runtime itself is imported by the functions, so that the folder can be asked how to install it where it is
missing."""

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
    "fp16": "ONNX Runtime's CPU kernels compute a model in fp16 in fp32 between casts; use precision=fp32.",
    "bf16": "ONNX Runtime has no bf16 kernels of convolutions on the CPU; use precision=fp32.",
    "fp8": "ONNX Runtime's CPU kernels have no fp8; use precision=int8.",
    "fp64": "ONNX Runtime has no fp64 kernels of convolutions and LSTMs; use precision=fp32.",
}
ON_CUDA = ("fp32", "tf32", "fp16")


def versions() -> dict[str, str]:
    runtime = _onnxruntime()
    import numpy
    import onnx

    return {
        "onnxruntime": runtime.__version__,
        "onnx": onnx.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def unsupported(case: Case) -> str | None:
    runtime = _onnxruntime()
    for setting, word in ONLY.items():
        found = getattr(case, setting)
        if found != word:
            return f"{setting} {found}: ONNX Runtime runs a finished graph, with {setting}={word} only; use that."
    if case.device == "cpu":
        return NOT_ON_CPU.get(case.precision)
    return _not_on_cuda(case, runtime)


def lower(work: Work, case: Case) -> Program:
    if reason := unsupported(case):
        raise Unsupported(reason)
    if case.precision == "int8":
        from steptime.frameworks.onnxruntime.quantised import QuantisedProgram

        return QuantisedProgram(work, case)
    from steptime.frameworks.onnxruntime.program import OnnxruntimeProgram

    return OnnxruntimeProgram(work, case)


def is_out_of_memory(error: BaseException) -> bool:
    """Its errors are plain exceptions with the cause in their text."""
    signs = ("Failed to allocate memory", "bad_alloc", "out of memory", "CUDNN_STATUS_ALLOC_FAILED")
    own = type(error).__module__.startswith("onnxruntime")
    return isinstance(error, MemoryError) or (own and any(sign in str(error) for sign in signs))


def _not_on_cuda(case: Case, runtime: ModuleType) -> str | None:
    if "CUDAExecutionProvider" not in (providers := runtime.get_available_providers()):
        return f"ONNX Runtime {runtime.__version__} has no CUDA provider here, only {', '.join(providers)}."
    if int(case.device.removeprefix("cuda:")) >= (count := _cuda_devices()):
        return (
            f"There is no {case.device}: this machine has {count} CUDA device(s), counted from 0."
        )
    if case.precision not in ON_CUDA:
        return f"ONNX Runtime's CUDA provider is used with {', '.join(ON_CUDA)}, not {case.precision}; use one of them."
    return None


def _cuda_devices() -> int:
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def _onnxruntime() -> ModuleType:
    try:
        import onnx  # noqa: F401  # its absence should be told before anything is built
        import onnxruntime
    except ImportError as problem:
        raise NotInstalled(
            f"ONNX Runtime cannot be imported here ({problem}); install it with: {INSTALL}"
        ) from None
    return onnxruntime
