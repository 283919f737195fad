"""What the GPU says of itself through NVML: clock, power, temperature, energy, what holds its clocks back, who uses it.

`nvml` is the module `pynvml`, or anything with its functions. A question that a board does not answer is left out."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from steptime.engine.clock import Clock

DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia")
SHARE = 0.001
"""Reading may take this part of the time: a dear read is done at fewer block ends."""


def open_nvml() -> Any | None:
    """None: no GPU of this kind, or nothing installed to ask it."""
    if not any(os.path.exists(path) for path in DRIVERS):
        return None  # importing the module to learn the same takes longer than all the rest of an inventory
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # a missing module, driver or device all mean the same here
        return None
    return pynvml


class Gpu:
    """One board, read at block ends after the device has been waited for."""

    def __init__(self, nvml: Any, handle: Any, clock: Clock = time.perf_counter_ns) -> None:
        self._nvml, self._handle, self._clock = nvml, handle, clock
        costs = []
        for _ in range(3):
            start = clock()
            readings(nvml, handle)
            costs.append(clock() - start)
        self.cost_ns = int(statistics.median(costs))
        self._next_ns = 0

    def read(self) -> dict[str, float] | None:
        """None: too early after the last reading to stay within its share of the time."""
        now = self._clock()
        if now < self._next_ns:
            return None
        self._next_ns = now + int(self.cost_ns / SHARE)
        return readings(self._nvml, self._handle)


def readings(nvml: Any, handle: Any) -> dict[str, float]:
    questions: dict[str, Callable[[], float]] = {
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "energy_mj": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle),
        "reasons": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
    }
    return _answers(nvml, questions)


def state(nvml: Any, handle: Any) -> dict[str, float]:
    """All of it, for somebody outside the timed process: how busy the board is, what it holds, how its clocks stand."""
    questions: dict[str, Callable[[], float]] = {
        "utilisation": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
        "memory_utilisation": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).memory / 100,
        "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
        "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
    }
    return {**_answers(nvml, questions), **readings(nvml, handle)}


def find(device: str, nvml: Any | None, clock: Clock = time.perf_counter_ns) -> Gpu | None:
    """The board behind `cuda:N`, which counts only the boards that the process may see."""
    if not nvml or not device.startswith("cuda:"):
        return None
    found = handle(nvml, int(device.removeprefix("cuda:")))
    return None if found is None else Gpu(nvml, found, clock)


def handle(nvml: Any, index: int) -> Any | None:
    """Of a board that the process may see, counted among those."""
    return _answer(nvml, lambda: _handle(nvml, index))


def visible_count(nvml: Any) -> int:
    return len(_visible()) or _answer(nvml, nvml.nvmlDeviceGetCount) or 0


def inventory(nvml: Any | None) -> list[dict[str, Any]]:
    """Every board of the machine, also those that this process may not use."""
    if nvml is None:
        return []
    count = _answer(nvml, nvml.nvmlDeviceGetCount) or 0
    return [_board(nvml, nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(count)]


def other_processes(nvml: Any | None) -> int | None:
    """Processes besides this one that compute on any board now. Ask before the first use of a GPU: in a container a
    process may be listed under a number that it does not know as its own."""
    if nvml is None:
        return None
    count = _answer(nvml, nvml.nvmlDeviceGetCount) or 0
    found: set[int] = set()
    for index in range(count):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        running = _answer(nvml, partial(nvml.nvmlDeviceGetComputeRunningProcesses, handle))
        found |= {process.pid for process in running or ()}
    return len(found - {os.getpid()})


def _board(nvml: Any, handle: Any) -> dict[str, Any]:
    return {
        "name": _text(_answer(nvml, lambda: nvml.nvmlDeviceGetName(handle))),
        "memory_bytes": _answer(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total),
        "driver": _text(_answer(nvml, nvml.nvmlSystemGetDriverVersion)),
        "sm_clock_most_mhz": _answer(
            nvml, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
        ),
        "memory_clock_most_mhz": _answer(
            nvml, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)
        ),
        "power_limit_w": _answer(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
    }


def _handle(nvml: Any, index: int) -> Any:
    visible = _visible()
    word = visible[index] if index < len(visible) else str(index)
    return (
        nvml.nvmlDeviceGetHandleByIndex(int(word))
        if word.isdigit()
        else nvml.nvmlDeviceGetHandleByUUID(word)
    )


def _visible() -> list[str]:
    return [
        word.strip()
        for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        if word.strip()
    ]


def _answers(nvml: Any, questions: dict[str, Callable[[], float]]) -> dict[str, float]:
    return {
        name: float(value)
        for name, ask in questions.items()
        if (value := _answer(nvml, ask)) is not None
    }


def _answer(nvml: Any, ask: Callable[[], Any]) -> Any:
    with suppress(
        nvml.NVMLError, AttributeError
    ):  # a function that this version of the module or driver lacks
        return ask()
    return None


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
