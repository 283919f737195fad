"""What a GPU reports through NVML: clocks, power, temperature, energy, throttling, processes.

`nvml` is the module `pynvml`, or any object with its functions. Values that a board does not
report are left out."""

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
# Reading may take this share of the time: an expensive board is read at fewer block ends.
MOST_READING_SHARE = 0.001


def open_nvml() -> Any | None:
    """None: no NVIDIA GPU, or pynvml is not installed."""
    # Importing pynvml to learn this takes longer than all the rest of an inventory.
    if not any(os.path.exists(path) for path in DRIVERS):
        return None
    try:
        import pynvml

        pynvml.nvmlInit()
    # A missing module, driver or device all mean the same here.
    except Exception:
        return None
    return pynvml


class Gpu:
    """One board, read at block ends after the device has been waited for."""

    def __init__(self, nvml: Any, handle: Any, clock: Clock = time.perf_counter_ns) -> None:
        self._nvml = nvml
        self._handle = handle
        self._clock = clock
        costs = []
        for _ in range(3):
            start_ns = clock()
            read_board(nvml, handle)
            costs.append(clock() - start_ns)
        # The median of three, because one read may be disturbed.
        self.cost_ns = int(statistics.median(costs))
        self._next_ns = 0

    def read(self) -> dict[str, float] | None:
        """None: too soon after the last reading to stay within its share of the time."""
        now = self._clock()
        if now < self._next_ns:
            return None
        self._next_ns = now + int(self.cost_ns / MOST_READING_SHARE)
        return read_board(self._nvml, self._handle)


def read_board(nvml: Any, handle: Any) -> dict[str, float]:
    questions: dict[str, Callable[[], float]] = {
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "energy_mj": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle),
        "reasons": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
    }
    return _query_all(nvml, questions)


def read_board_in_full(nvml: Any, handle: Any) -> dict[str, float]:
    """With utilisation and memory, for a monitor outside the timed process."""
    questions: dict[str, Callable[[], float]] = {
        "utilisation": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
        "memory_utilisation": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).memory / 100,
        "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
        "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
    }
    return {**_query_all(nvml, questions), **read_board(nvml, handle)}


def find_gpu(device: str, nvml: Any | None, clock: Clock = time.perf_counter_ns) -> Gpu | None:
    """The board of `cuda:N`; N counts only the boards that the process may see."""
    if not nvml or not device.startswith("cuda:"):
        return None
    handle = find_handle(nvml, int(device.removeprefix("cuda:")))
    return None if handle is None else Gpu(nvml, handle, clock)


def find_handle(nvml: Any, index: int) -> Any | None:
    """Of the board with this number among those that the process may see."""
    return _query(nvml, lambda: _get_handle(nvml, index))


def visible_count(nvml: Any) -> int:
    return len(_visible_boards()) or _board_count(nvml)


def inventory(nvml: Any | None) -> list[dict[str, Any]]:
    """Every board of the machine, including those that this process may not use."""
    if nvml is None:
        return []
    boards = []
    for index in range(_board_count(nvml)):
        boards.append(_describe_board(nvml, nvml.nvmlDeviceGetHandleByIndex(index)))
    return boards


def other_processes(nvml: Any | None) -> int | None:
    """Processes besides this one that compute on any board now.

    Ask before the first use of a GPU: in a container NVML may list this process under another
    number than its own."""
    if nvml is None:
        return None
    processes: set[int] = set()
    for index in range(_board_count(nvml)):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        running = _query(nvml, partial(nvml.nvmlDeviceGetComputeRunningProcesses, handle))
        processes |= {process.pid for process in running or ()}
    return len(processes - {os.getpid()})


def _board_count(nvml: Any) -> int:
    return _query(nvml, nvml.nvmlDeviceGetCount) or 0


def _describe_board(nvml: Any, handle: Any) -> dict[str, Any]:
    def max_clock(clock: int) -> Any:
        return _query(nvml, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, clock))

    def power_limit() -> float:
        return float(nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000)

    return {
        "name": _text(_query(nvml, lambda: nvml.nvmlDeviceGetName(handle))),
        "memory_bytes": _query(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total),
        "driver": _text(_query(nvml, nvml.nvmlSystemGetDriverVersion)),
        "sm_clock_most_mhz": max_clock(nvml.NVML_CLOCK_SM),
        "memory_clock_most_mhz": max_clock(nvml.NVML_CLOCK_MEM),
        "power_limit_w": _query(nvml, power_limit),
    }


def _get_handle(nvml: Any, index: int) -> Any:
    visible = _visible_boards()
    board = visible[index] if index < len(visible) else str(index)
    if board.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(board))
    return nvml.nvmlDeviceGetHandleByUUID(board)


def _visible_boards() -> list[str]:
    """Numbers or UUIDs; empty if all boards are visible."""
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return [name.strip() for name in names if name.strip()]


def _query_all(nvml: Any, questions: dict[str, Callable[[], float]]) -> dict[str, float]:
    answers = {}
    for name, question in questions.items():
        value = _query(nvml, question)
        if value is not None:
            answers[name] = float(value)
    return answers


def _query(nvml: Any, question: Callable[[], Any]) -> Any:
    """None: the board, or this version of the module or driver, does not report it."""
    with suppress(nvml.NVMLError, AttributeError):
        return question()
    return None


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
