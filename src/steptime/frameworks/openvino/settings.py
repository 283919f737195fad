"""Options of a compiled model: threads, streams, precision. Every one is set explicitly and
recorded."""

from __future__ import annotations

import os
import sys
from typing import Any

import openvino

from steptime.core.case import Case

# In int8, what is not quantised stays fp32.
PRECISIONS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "int8": "f32"}
READ_BACK = {
    "threads": "INFERENCE_NUM_THREADS",
    "streams": "NUM_STREAMS",
    "inference_precision": "INFERENCE_PRECISION_HINT",
    "performance_hint": "PERFORMANCE_HINT",
    "cpu_pinning": "ENABLE_CPU_PINNING",
    "hyper_threading": "ENABLE_HYPER_THREADING",
}


def properties(case: Case) -> dict[str, Any]:
    return {
        # By default OpenVINO computes in bf16 if the CPU has it.
        "INFERENCE_PRECISION_HINT": PRECISIONS[case.precision],
        "INFERENCE_NUM_THREADS": case.threads or len(os.sched_getaffinity(0)),
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        # Otherwise there are fewer threads than the case asks for if cores have siblings.
        "ENABLE_HYPER_THREADING": True,
    }


def compile_model(model: Any, case: Case, *, count_time: bool = False) -> Any:
    """`model`: the bytes of an ONNX model, or what a quantiser made of it."""
    core = openvino.Core()
    if isinstance(model, bytes):
        model = core.read_model(model)
    options = properties(case)
    if count_time:
        options["PERF_COUNT"] = True
    return core.compile_model(model, "CPU", options)


def facts(compiled: Any) -> dict[str, Any]:
    """Read back from the compiled model itself."""
    facts = {}
    for name, property_name in READ_BACK.items():
        facts[name] = _to_json(compiled.get_property(property_name))
    facts["weights_dtype"] = "float32"
    facts["telemetry"] = bool(sys.modules.get("openvino_telemetry"))
    return facts


def _to_json(value: Any) -> bool | int | str:
    """JSON has none of OpenVINO's types."""
    if isinstance(value, openvino.Type):
        name: str = value.get_type_name()
        return name
    if isinstance(value, bool | int | str):
        return value
    return str(value).rpartition(".")[2]
