"""TensorFlow on the CPU: eager, as a graph (`tf.function`), compiled by XLA, or in a session of
TensorFlow 1.

The functions import TensorFlow themselves, so that this package can be imported without it and can
say how to install it."""

from __future__ import annotations

import os
import platform
from types import ModuleType

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.core.program import Program
from steptime.graph import Work

INSTALL = "pip install 'steptime[tensorflow]'"
REQUIRES = ("tensorflow",)
OPTIONAL = ()
MODES = ("graph", "eager", "xla", "session")
# TensorFlow reads these once, when it is imported. A variable that is already set keeps its value;
# `facts` reports it.
ENVIRONMENT = {
    # No messages about how it was built.
    "TF_CPP_MIN_LOG_LEVEL": "2",
    # Otherwise the CPU decides whether oneDNN computes.
    "TF_ENABLE_ONEDNN_OPTS": "1",
}
OUT_OF_MEMORY = (
    "RESOURCE_EXHAUSTED",
    "ResourceExhaustedError",
    "OOM when allocating",
    "Out of memory",
    "out of memory",
)


def versions() -> dict[str, str]:
    tensorflow = _tensorflow()
    import numpy

    return {
        "tensorflow": tensorflow.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "compiler": tensorflow.version.COMPILER_VERSION,
    }


def unsupported(case: Case) -> str | None:
    _tensorflow()
    if case.mode not in MODES:
        return f"TensorFlow has no mode {case.mode!r}; it has {', '.join(MODES)}."
    if case.device != "cpu":
        return f"TensorFlow is lowered for the CPU only, not for {case.device}; use device=cpu."
    if case.precision == "tf32":
        return "tf32 is a mode of NVIDIA's matrix units; the CPU has fp32."
    if case.precision in ("fp8", "int8"):
        return f"TensorFlow's folder has no {case.precision}; it has fp32, bf16, fp16 and fp64."
    from steptime.frameworks.tensorflow import exchange

    return exchange.unsupported(case)


def lower(work: Work, case: Case) -> Program:
    if reason := unsupported(case):
        raise Unsupported(reason)
    from steptime.frameworks.tensorflow.program import TensorflowProgram

    return TensorflowProgram(work, case)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    message = f"{type(error).__name__}: {error}"
    return any(sign in message for sign in OUT_OF_MEMORY)


def _tensorflow() -> ModuleType:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import tensorflow
    except ImportError as problem:
        raise NotInstalled(
            f"TensorFlow cannot be imported ({problem}); install it with: {INSTALL}"
        ) from problem
    # It warns against sessions, which mode=session asks for.
    tensorflow.get_logger().setLevel("ERROR")
    return tensorflow
