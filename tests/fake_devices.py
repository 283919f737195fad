"""A device with its own queue and clock, so that time in these tests is exact and costs none."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial

import numpy as np

CLOCK_COST_NS = 50


class FakeClock:
    """Moves when it is read, and when something takes time."""

    def __init__(self):
        self.now = 1_000_000_000

    def __call__(self) -> int:
        self.now += CLOCK_COST_NS
        return self.now


class FakeTimer:
    def __init__(self, device):
        self.device = device

    def record(self) -> int:
        self.device.clock.now += self.device.event_cost_ns
        return max(self.device.clock.now, self.device.busy_until)

    def elapsed_ns(self, first: int, second: int) -> int:
        return second - first


class FakeResult:
    """An array that exists when the device has got to it."""

    def __init__(self, device):
        self.device, self.ready_ns = device, device.busy_until

    def __array__(self, dtype=None, copy=None):
        self.device.clock.now = max(self.device.clock.now, self.ready_ns)
        return np.zeros(1)


class FakeDevice:
    """A program whose step takes `dispatch_ns` of the host and `work(number)` ns of the device."""

    def __init__(
        self,
        work: Callable[[int], int] | int,
        *,
        dispatch_ns: int = 1_000,
        event_cost_ns: int = 100,
    ):
        self.clock = FakeClock()
        self.work = work if callable(work) else lambda number: work
        self.dispatch_ns, self.event_cost_ns = dispatch_ns, event_cost_ns
        self.timer = FakeTimer(self)
        self.busy_until = self.steps = self.compiled = 0
        self.waits = True
        self.compiles_at: set[int] = set()

    def step(self) -> FakeResult:
        self.clock.now += self.dispatch_ns
        self.busy_until = max(self.clock.now, self.busy_until) + self.work(self.steps)
        self.compiled += self.steps in self.compiles_at
        self.steps += 1
        return FakeResult(self)

    def wait(self) -> None:
        if self.waits:
            self.clock.now = max(self.clock.now, self.busy_until)

    def compilations(self) -> int:
        return self.compiled

    def memory(self) -> dict:
        return {"peak_bytes": 7}

    def facts(self) -> dict:
        return {"threads": 1}


class HostProgram(FakeDevice):
    """Done when step() returns."""

    def __init__(self, work: Callable[[int], int] | int):
        super().__init__(work, dispatch_ns=0)
        self.timer = None

    def step(self) -> FakeResult:
        result = super().step()
        self.clock.now = self.busy_until
        return result


class FakeNvml:
    """NVML as `pynvml` has it, for two boards."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVMLError = type("NVMLError", (Exception,), {})

    def __init__(self, clock=None, cost_ns: int = 0):
        self.clock, self.cost_ns, self.reasons, self.pids = clock, cost_ns, 0, []
        self.reads = 0

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return uuid

    def nvmlDeviceGetName(self, handle):
        return b"Board"

    def nvmlDeviceGetMemoryInfo(self, handle):
        return type("Memory", (), {"total": 1 << 30, "used": 4096})

    def nvmlDeviceGetUtilizationRates(self, handle):
        return type("Rates", (), {"gpu": 75, "memory": 30})

    def nvmlSystemGetDriverVersion(self):
        return "600.1"

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        return 1980 if kind == self.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return 700_000

    def nvmlDeviceGetClockInfo(self, handle, kind):
        self.reads += 1
        if self.clock is not None:
            self.clock.now += self.cost_ns
        return 1500

    def nvmlDeviceGetPowerUsage(self, handle):
        return 250_000

    def nvmlDeviceGetTemperature(self, handle, kind):
        return 61

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        raise self.NVMLError("not on this board")

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [type("Process", (), {"pid": pid}) for pid in self.pids]


def spin(nanoseconds: int) -> Callable[[], bytes]:
    """Always the same work, for tests on the real clock.

    In C, because the speed of a Python loop depends on where its frame lies, and so on its
    caller. It uses little memory, so that it leaves the caches alone."""
    work = partial(hashlib.pbkdf2_hmac, "md5", b"", b"")
    start = time.thread_time_ns()
    work(10_000)
    return partial(work, max(1, round(10_000 * nanoseconds / (time.thread_time_ns() - start))))
