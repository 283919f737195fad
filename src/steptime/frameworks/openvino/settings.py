"""How a model is compiled: threads, streams, precision. Set explicitly and recorded."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

import openvino

from steptime.core.case import Case

PRECISIONS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}
READ_BACK = {
    "threads": "INFERENCE_NUM_THREADS",
    "streams": "NUM_STREAMS",
    "inference_precision": "INFERENCE_PRECISION_HINT",
    "performance_hint": "PERFORMANCE_HINT",
    "cpu_pinning": "ENABLE_CPU_PINNING",
    "hyper_threading": "ENABLE_HYPER_THREADING",
}


def properties(case: Case) -> dict[str, Any]:
    """Left to itself OpenVINO computes in bf16 wherever the CPU has it: the precision is always said."""
    return {
        "INFERENCE_PRECISION_HINT": PRECISIONS[case.precision],
        "INFERENCE_NUM_THREADS": case.threads or len(os.sched_getaffinity(0)),
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_HYPER_THREADING": True,  # else fewer threads than asked for where cores have siblings
    }


def compiled(model: bytes, case: Case, **more: Any) -> Any:
    core = openvino.Core()
    return core.compile_model(core.read_model(model), "CPU", {**properties(case), **more})


def facts(running: Any) -> dict[str, Any]:
    """Read back from the compiled model itself."""
    found = {word: _plain(running.get_property(name)) for word, name in READ_BACK.items()}
    return {**found, "weights_dtype": "float32", "telemetry": bool(sys.modules.get("openvino_telemetry"))}


def executed(model: bytes, case: Case, values: Any) -> dict[str, int]:
    """How often each kernel ran in one step, by '<operator> <kernel>': from a model of its own, because counting slows
    the one that is timed."""
    request = compiled(model, case, PERF_COUNT=True).create_infer_request()
    request.infer({0: values})
    ran = [info for info in request.get_profiling_info() if info.status == openvino.ProfilingInfo.Status.EXECUTED]
    return dict(sorted(Counter(f"{info.node_type} {info.exec_type}" for info in ran).items()))


def _plain(value: Any) -> Any:
    """JSON has no word for OpenVINO's own types."""
    if isinstance(value, openvino.Type):
        return value.get_type_name()
    return value if isinstance(value, bool | int | str) else str(value).rpartition(".")[2]
