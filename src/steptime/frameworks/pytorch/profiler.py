"""Steps under PyTorch's own profiler: operators by their own time, and the trace."""

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

STEP = "step"
ATTRIBUTED = (
    0.9  # less of the device's time than this known by operator: then kernels are named instead
)


def watch(program: Any, steps: int) -> StepProfile:
    activities = [torch.profiler.ProfilerActivity.CPU]
    cuda = program.device.type == "cuda"
    if cuda:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.profiler.profile(activities=activities) as profiler:
            seconds = _run(program, steps)
        averages = list(profiler.key_averages())
        events = _trace(profiler)
    operators = _on_device(averages, seconds) if cuda else _on_host(averages)
    return StepProfile(operators, events, seconds, "device" if cuda else "host")


def _run(program: Any, steps: int) -> float:
    begin = time.perf_counter()
    for _ in range(steps):
        with torch.profiler.record_function(STEP):
            program.step()
    program.wait()
    return time.perf_counter() - begin


def _on_host(averages: list[Any]) -> tuple[Operator, ...]:
    return tuple(
        Operator(_name(one.key), one.count, one.self_cpu_time_total / 1e6) for one in averages
    )


def _on_device(averages: list[Any], seconds: float) -> tuple[Operator, ...]:
    """A kernel's time belongs to the operator that launched it. A replayed graph launches without any."""
    own = [one for one in averages if not _is_annotation(one) and one.self_device_time_total > 0]
    host = [one for one in own if one.device_type == torch.autograd.DeviceType.CPU]
    kernels = [one for one in own if one.device_type != torch.autograd.DeviceType.CPU]
    busy = _microseconds(kernels)
    if not busy:
        raise Unsupported(
            "The profiler saw nothing on the device: the driver may forbid it to unprivileged users."
        )
    chosen = host if _microseconds(host) >= ATTRIBUTED * busy else kernels
    idle = Operator(IDLE, 0, max(0.0, seconds - busy / 1e6))
    return (
        *(Operator(one.key, one.count, one.self_device_time_total / 1e6) for one in chosen),
        idle,
    )


def _microseconds(averages: list[Any]) -> float:
    return float(sum(one.self_device_time_total for one in averages))


def _is_annotation(one: Any) -> bool:
    return (
        one.key == STEP
        or one.key.startswith("Optimizer.")
        or bool(getattr(one, "is_user_annotation", False))
    )


def _name(key: str) -> str:
    """Compiled code is named after a hash; the time of a step outside all operators is the host's own."""
    if key == STEP:
        return BETWEEN
    return "CompiledFxGraph" if "CompiledFxGraph" in key else key


def _trace(profiler: Any) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text(errors="replace"))["traceEvents"]
    return [
        event for event in events if event.get("cat") != "Trace"
    ]  # the profiler's own span around everything
