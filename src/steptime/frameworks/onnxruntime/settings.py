"""How a session is made: threads, provider, optimisation. Set explicitly and recorded."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnxruntime

from steptime.core.case import Case
from steptime.core.errors import Unsupported

DTYPES = {"fp32": np.float32, "tf32": np.float32, "fp16": np.float16, "int8": np.float32}
# Threads that wait by spinning take the CPU from whatever the process does next: twice as slow, seen in PyTorch. So
# they only spin where the case asks for it.
SPINNING = ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")
SILENT_BUT_FOR_ERRORS = 3


def options(case: Case) -> Any:
    found = onnxruntime.SessionOptions()
    found.intra_op_num_threads = case.threads or len(os.sched_getaffinity(0))
    found.inter_op_num_threads = 1
    found.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    found.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    found.log_severity_level = SILENT_BUT_FOR_ERRORS
    for key in SPINNING:
        found.add_session_config_entry(key, str(int(case.wait_policy == "active")))
    return found


def session(model: bytes, case: Case, chosen: Any) -> Any:
    """Never the silent fall back to the CPU that follows from a provider that cannot start."""
    name, details = provider(case)
    found = onnxruntime.InferenceSession(
        model, chosen, providers=[(name, details)], enable_fallback=0
    )
    if found.get_providers()[0] != name:
        raise Unsupported(
            f"ONNX Runtime could not start {name} on {case.device}; it has {found.get_providers()}."
        )
    return found


def provider(case: Case) -> tuple[str, dict[str, str]]:
    """The CUDA provider computes fp32 in tf32 unless it is told not to."""
    if case.device == "cpu":
        return "CPUExecutionProvider", {}
    tf32 = str(int(case.precision == "tf32"))
    return "CUDAExecutionProvider", {
        "device_id": case.device.removeprefix("cuda:"),
        "use_tf32": tf32,
    }


def place(case: Case) -> tuple[str, int]:
    """A device in ONNX Runtime's words."""
    return ("cpu", 0) if case.device == "cpu" else ("cuda", int(case.device.removeprefix("cuda:")))


def facts(case: Case, running: Any) -> dict[str, Any]:
    """Read back from the session itself."""
    chosen = running.get_session_options()
    return {
        "threads": chosen.intra_op_num_threads,
        "interop_threads": chosen.inter_op_num_threads,
        "spinning": any(chosen.get_session_config_entry(key) != "0" for key in SPINNING),
        "graph_optimization": chosen.graph_optimization_level.name,
        "providers": running.get_providers(),
        "provider_options": provider(case)[1],
        "weights_dtype": np.dtype(DTYPES[case.precision]).name,
    }
