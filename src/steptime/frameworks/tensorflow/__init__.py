"""TensorFlow on the CPU: eager, as a graph (`tf.function`), compiled by XLA, or in a session of the first version.

TensorFlow is imported by the functions, so that the folder can be asked how to install it where it is missing."""

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
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "2",  # what it is built with is no news
    "TF_ENABLE_ONEDNN_OPTS": "1",  # else it depends on the CPU whether oneDNN computes
}
"""Read once, when TensorFlow is imported. Whoever sets one beforehand is obeyed; `facts` tells."""


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
        return f"TensorFlow is lowered for the CPU alone, the CUDA device {case.device} is out of its reach here."
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
    signs = (
        "RESOURCE_EXHAUSTED",
        "ResourceExhaustedError",
        "OOM when allocating",
        "Out of memory",
        "out of memory",
    )
    return isinstance(error, MemoryError) or any(
        sign in f"{type(error).__name__}: {error}" for sign in signs
    )


def _tensorflow() -> ModuleType:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import tensorflow
    except ImportError as problem:
        raise NotInstalled(
            f"TensorFlow cannot be imported here ({problem}); install it with: {INSTALL}"
        ) from problem
    tensorflow.get_logger().setLevel(
        "ERROR"
    )  # it advises against sessions, which are what is asked for
    return tensorflow
