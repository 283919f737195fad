"""Options of a session: threads, provider, optimisation. Every one is set explicitly and
recorded."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnxruntime

from steptime.core.case import Case
from steptime.core.errors import Unsupported

DTYPES = {"fp32": np.float32, "tf32": np.float32, "fp16": np.float16, "int8": np.float32}
# Threads that spin while they wait take the CPU from whatever the process does next: PyTorch was
# twice as slow. So they spin only if the case asks for it.
SPINNING = ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")
LOG_ERRORS_ONLY = 3


def session_options(case: Case) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = case.threads or len(os.sched_getaffinity(0))
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = LOG_ERRORS_ONLY
    for key in SPINNING:
        options.add_session_config_entry(key, str(int(case.wait_policy == "active")))
    return options


def open_session(model: bytes, case: Case, options: Any) -> Any:
    name, provider_options = provider(case)
    # Without a fallback: if the provider cannot start, ONNX Runtime would silently use the CPU.
    session = onnxruntime.InferenceSession(
        model, options, providers=[(name, provider_options)], enable_fallback=0
    )
    if session.get_providers()[0] != name:
        raise Unsupported(
            f"ONNX Runtime could not start {name} on {case.device}; "
            f"it has {session.get_providers()}."
        )
    return session


def provider(case: Case) -> tuple[str, dict[str, str]]:
    """The name and the options of the execution provider."""
    if case.device == "cpu":
        return "CPUExecutionProvider", {}
    # By default the CUDA provider computes fp32 in tf32.
    tf32 = str(int(case.precision == "tf32"))
    index = case.device.removeprefix("cuda:")
    return "CUDAExecutionProvider", {"device_id": index, "use_tf32": tf32}


def device(case: Case) -> tuple[str, int]:
    """ONNX Runtime's name and index of the device."""
    if case.device == "cpu":
        return "cpu", 0
    return "cuda", int(case.device.removeprefix("cuda:"))


def facts(case: Case, session: Any) -> dict[str, Any]:
    """Read back from the session itself."""
    options = session.get_session_options()
    _, provider_options = provider(case)
    spinning = any(options.get_session_config_entry(key) != "0" for key in SPINNING)
    return {
        "threads": options.intra_op_num_threads,
        "interop_threads": options.inter_op_num_threads,
        "spinning": spinning,
        "graph_optimization": options.graph_optimization_level.name,
        "providers": session.get_providers(),
        "provider_options": provider_options,
        "weights_dtype": np.dtype(DTYPES[case.precision]).name,
    }
