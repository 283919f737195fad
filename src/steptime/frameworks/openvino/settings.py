"""How a model is compiled: threads, streams, precision. Set explicitly and recorded."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

import openvino

from steptime.core.case import Case

PRECISIONS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "int8": "f32"}
"""What is not quantised in int8 stays fp32."""
READ_BACK = {
    "threads": "INFERENCE_NUM_THREADS",
    "streams": "NUM_STREAMS",
    "inference_precision": "INFERENCE_PRECISION_HINT",
    "performance_hint": "PERFORMANCE_HINT",
    "cpu_pinning": "ENABLE_CPU_PINNING",
    "hyper_threading": "ENABLE_HYPER_THREADING",
}
NO_KERNEL = ("unknown", "undef")


def properties(case: Case) -> dict[str, Any]:
    """Left to itself OpenVINO computes in bf16 wherever the CPU has it: the precision is always said."""
    return {
        "INFERENCE_PRECISION_HINT": PRECISIONS[case.precision],
        "INFERENCE_NUM_THREADS": case.threads or len(os.sched_getaffinity(0)),
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_HYPER_THREADING": True,  # else fewer threads than asked for where cores have siblings
    }


def compiled(model: Any, case: Case, **more: Any) -> Any:
    """From the ONNX model's bytes, or from what a quantiser made of it."""
    core = openvino.Core()
    readable = core.read_model(model) if isinstance(model, bytes) else model
    return core.compile_model(readable, "CPU", {**properties(case), **more})


def facts(running: Any) -> dict[str, Any]:
    """Read back from the compiled model itself."""
    found = {word: _plain(running.get_property(name)) for word, name in READ_BACK.items()}
    return {
        **found,
        "weights_dtype": "float32",
        "telemetry": bool(sys.modules.get("openvino_telemetry")),
    }


def kernels(running: Any) -> dict[str, int]:
    """By '<operator> <kernel>', read from the very model that is timed. A kernel's name ends with the type in which it
    computes, so a silent bf16 is seen here; what has no kernel does nothing."""
    told = [node.get_rt_info() for node in running.get_runtime_model().get_ops()]
    ran = [(info["layerType"].value, info["primitiveType"].value) for info in told]
    return dict(
        sorted(
            Counter(
                f"{op} {kernel}" for op, kernel in ran if not kernel.startswith(NO_KERNEL)
            ).items()
        )
    )


def _plain(value: Any) -> Any:
    """JSON has no word for OpenVINO's own types."""
    if isinstance(value, openvino.Type):
        return value.get_type_name()
    return value if isinstance(value, bool | int | str) else str(value).rpartition(".")[2]
