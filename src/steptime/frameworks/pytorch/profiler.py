"""Steps under PyTorch's profiler: operators by their own time, and the trace."""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from steptime.core.errors import Unsupported
from steptime.core.inspection import BETWEEN, IDLE, Operator, StepProfile
from steptime.core.program import Program

STEP = "step"
# If less of the device's time than this is known by operator, kernels are named instead.
ATTRIBUTED = 0.9


def profile_steps(program: Program, steps: int, *, cuda: bool) -> StepProfile:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if cuda:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.profiler.profile(activities=activities) as profiler:
            seconds = _run_steps(program, steps)
        averages = list(profiler.key_averages())
        events = _trace_events(profiler)
    if cuda:
        return StepProfile(_device_operators(averages, seconds), events, seconds, "device")
    return StepProfile(_host_operators(averages), events, seconds, "host")


def _run_steps(program: Program, steps: int) -> float:
    begin = time.perf_counter()
    for _ in range(steps):
        with torch.profiler.record_function(STEP):
            program.step()
    program.wait()
    return time.perf_counter() - begin


def _host_operators(averages: list[Any]) -> tuple[Operator, ...]:
    operators = []
    for entry in averages:
        seconds = entry.self_cpu_time_total / 1e6
        operators.append(Operator(_operator_name(entry.key), entry.count, seconds))
    return tuple(operators)


def _device_operators(averages: list[Any], seconds: float) -> tuple[Operator, ...]:
    """The time of a kernel belongs to the operator that launched it.

    A replayed CUDA graph launches kernels without an operator."""
    cpu = torch.autograd.DeviceType.CPU
    entries = [
        entry
        for entry in averages
        if not _is_annotation(entry) and entry.self_device_time_total > 0
    ]
    by_operator = [entry for entry in entries if entry.device_type == cpu]
    by_kernel = [entry for entry in entries if entry.device_type != cpu]
    busy = _device_microseconds(by_kernel)
    if not busy:
        raise Unsupported(
            "The profiler saw nothing on the device: "
            "the driver may forbid it to unprivileged users."
        )
    attributed = _device_microseconds(by_operator) >= ATTRIBUTED * busy
    chosen = by_operator if attributed else by_kernel
    operators = []
    for entry in chosen:
        operators.append(Operator(entry.key, entry.count, entry.self_device_time_total / 1e6))
    operators.append(Operator(IDLE, 0, max(0.0, seconds - busy / 1e6)))
    return tuple(operators)


def _device_microseconds(entries: list[Any]) -> float:
    return float(sum(entry.self_device_time_total for entry in entries))


def _is_annotation(entry: Any) -> bool:
    if entry.key == STEP or entry.key.startswith("Optimizer."):
        return True
    return bool(getattr(entry, "is_user_annotation", False))


def _operator_name(key: str) -> str:
    """Compiled code has a hash in its name, which is cut.

    The time of a step outside all operators is that of the host itself."""
    if key == STEP:
        return BETWEEN
    return "CompiledFxGraph" if "CompiledFxGraph" in key else key


def _trace_events(profiler: Any) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text(errors="replace"))["traceEvents"]
    # Without the profiler's own span around everything.
    return [event for event in events if event.get("cat") != "Trace"]
