"""The best that this device does: matrix products per number format, and copies.

Peaks are measured, never looked up. Inputs are standard normal: zeros and constants toggle fewer
bits, draw less power and run up to 13 % faster than any real data. A device at its power limit
slows down within tens of milliseconds, so products come in short bursts with pauses between them.
The best burst is the peak; the median at the same shape is reported too."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from steptime.frameworks.pytorch.settings import set_tf32

Shape = tuple[int, ...]

# The likeliest first, because time may run out. The uneven ones make whole waves of 128 × 256
# tiles on 132 processors.
CUDA_SHAPES = [
    (4096, 4096, 4096),
    (4224, 8192, 4096),
    (8192, 4224, 4096),
    (8192, 8192, 8192),
    (6144, 6144, 6144),
    (8448, 8192, 4096),
    (4224, 8192, 8192),
    (8192, 8192, 4096),
    (2048, 2048, 2048),
]
CPU_SHAPES = [(size, size, size) for size in (512, 1024, 2048)]
# Bytes.
CUDA_COPIES = (2**28, 2**30, 2**32)
CPU_COPIES = (2**26, 2**28)
FORMATS = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp64": torch.float64,
}
LEAST_CAPABILITY = {"tf32": (8, 0), "bf16": (8, 0), "fp8_e4m3": (8, 9)}
BURST_SECONDS = 0.004
PAUSE_SECONDS = 0.02


@dataclass
class Trial:
    """One shape: how often a burst repeats the work, and the rate of each burst."""

    shape: Shape
    amount: float  # floating point operations, or bytes read and written, of one repeat
    run: Callable[[], Any]
    repeats: int = 1
    rates: list[float] = field(default_factory=list)


def measure_peaks(device: str, seconds: float) -> dict[str, Any]:
    """By format and for `copy`: best, median, shape and number of bursts. In about `seconds`."""
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch_device = torch.device(device)
    if torch_device.type == "cuda":
        torch.cuda.set_device(torch_device)
    names = [*_formats(torch_device), "copy"]
    peaks = {}
    for name in names:
        deadline = time.perf_counter() + seconds / len(names)
        set_tf32(name == "tf32")
        if name == "copy":
            unit = "bytes"
            trials = _copies(torch_device)
        else:
            unit = "flops"
            trials = _products(name, torch_device)
        peaks[name] = _summary(unit, _best(trials, torch_device, deadline))
    set_tf32(False)
    return peaks


def _formats(device: torch.device) -> list[str]:
    if device.type == "cpu":
        return ["fp32", "fp64", "bf16"]
    capability = torch.cuda.get_device_capability(device)
    return [name for name in FORMATS if capability >= LEAST_CAPABILITY.get(name, (0, 0))]


def _products(name: str, device: torch.device) -> Iterator[Trial]:
    """m × k times k × n, with both memory orders of the second matrix.

    Libraries differ in which order is faster."""
    dtype = FORMATS[name]
    shapes = CPU_SHAPES if device.type == "cpu" else CUDA_SHAPES
    for m, n, k in shapes:
        flops = 2.0 * m * n * k
        left = torch.randn(m, k, device=device)
        right = torch.randn(n, k, device=device)
        left = left.to(dtype)
        right = right.to(dtype)
        if name == "fp8_e4m3":
            yield Trial((m, n, k), flops, _scaled_product(left, right.t()))
            continue
        result = torch.empty(m, n, device=device, dtype=dtype)
        for second in (right.t(), right.t().contiguous()):
            yield Trial((m, n, k), flops, _product(left, second, result))


def _product(left: torch.Tensor, right: torch.Tensor, result: torch.Tensor) -> Callable[[], Any]:
    return lambda: torch.mm(left, right, out=result)


def _scaled_product(left: torch.Tensor, right: torch.Tensor) -> Callable[[], Any]:
    """cuBLASLt needs the second matrix column by column.

    Sums are in the matrix units' own, shorter accumulators."""
    scale = torch.ones((), device=left.device)
    return lambda: torch._scaled_mm(
        left, right, scale, scale, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def _copies(device: torch.device) -> Iterator[Trial]:
    if device.type == "cpu":
        free = 2**40
        sizes: tuple[int, ...] = CPU_COPIES
    else:
        free, _ = torch.cuda.mem_get_info(device)
        sizes = CUDA_COPIES
    for size in sizes:
        if 3 * size > free:
            return
        source = torch.randn(size // 4, device=device)
        yield Trial((size,), 2.0 * size, _copy(torch.empty_like(source), source))


def _copy(target: torch.Tensor, source: torch.Tensor) -> Callable[[], Any]:
    return lambda: target.copy_(source)


def _best(trials: Iterator[Trial], device: torch.device, deadline: float) -> Trial:
    """A few bursts of every shape for half of the time, then the two fastest shapes in turn."""
    half = (time.perf_counter() + deadline) / 2
    leaders: list[Trial] = []
    for trial in trials:
        _calibrate(trial, device)
        for _ in range(3):
            _burst(trial, device)
        leaders = sorted([*leaders, trial], key=_fastest)[-2:]
        if time.perf_counter() > half:
            break
    while time.perf_counter() < deadline:
        for trial in leaders:
            _burst(trial, device)
    return max(leaders, key=_fastest)


def _fastest(trial: Trial) -> float:
    return max(trial.rates)


def _calibrate(trial: Trial, device: torch.device) -> None:
    """The first call loads and chooses kernels; the second shows how many fill a burst."""
    _time_burst(trial, device)
    seconds = _time_burst(trial, device)
    _set_repeats(trial, seconds)


def _set_repeats(trial: Trial, seconds: float) -> None:
    trial.repeats = max(1, round(trial.repeats * BURST_SECONDS / seconds))


def _burst(trial: Trial, device: torch.device) -> None:
    if device.type == "cuda":
        time.sleep(PAUSE_SECONDS)
    seconds = _time_burst(trial, device)
    trial.rates.append(trial.repeats * trial.amount / seconds)
    # Again, because a device that was idle starts slowly.
    _set_repeats(trial, seconds)


def _time_burst(trial: Trial, device: torch.device) -> float:
    if device.type == "cpu":
        start = time.perf_counter()
        for _ in range(trial.repeats):
            trial.run()
        return time.perf_counter() - start
    first = torch.cuda.Event(enable_timing=True)
    last = torch.cuda.Event(enable_timing=True)
    # One more in front: events count from when the device starts on them, and the queue must not
    # run dry.
    trial.run()
    first.record()
    for _ in range(trial.repeats):
        trial.run()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3


def _summary(unit: str, trial: Trial) -> dict[str, Any]:
    return {
        f"{unit}_per_second": _fastest(trial),
        f"median_{unit}_per_second": statistics.median(trial.rates),
        "shape": list(trial.shape),
        "n": len(trial.rates),
        "inputs": "standard normal",
    }
