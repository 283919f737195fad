"""Flags about the machine, one rule each: what side channels and the machine's probe recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from steptime.analysis.process import Process
from steptime.analysis.statistics import per_step, queue_share
from steptime.core.format import percent
from steptime.core.measurement import THERMAL_REASONS, Block

Processes = Sequence[Process]

# Shares of the time.
QUEUE = 0.05
OTHERS = 0.05
PRESSURE = 0.10
BUSY = 0.95
STEAL = 0.01
GC = 0.01
# Shares of the blocks.
PRESSED_BLOCKS = 0.25
HOT_BLOCKS = 0.01
SLOW_BLOCKS = 0.10
CAPPED_BLOCKS = 0.01
# A GPU clock below this share of its usual value is slow.
SLOW_CLOCK = 0.95
# NVML: software power cap.
POWER_CAP = 0x4
# Page faults per step.
FAULTS = 50


def _blocks(processes: Processes) -> Iterator[Block]:
    return (block for process in processes for block in process.blocks)


def _host_ns(processes: Processes) -> int:
    """At least 1, since it is divided by."""
    return max(1, sum(block.host_ns for block in _blocks(processes)))


def contended(processes: Processes) -> str | None:
    """Threads of one process may wait for each other: that is no neighbour's fault."""
    others = _others_share(processes)
    if others is not None and others <= OTHERS:
        return None
    queue = queue_share(processes)
    if queue is not None and queue > QUEUE:
        waited = f"a thread was ready but not running for {percent(queue)} of the time"
        return waited if others is None else f"{waited}; others used {others:.2f} CPUs"
    pressures = [block.pressure for block in _blocks(processes) if block.pressure is not None]
    pressed = sum(pressure > PRESSURE for pressure in pressures)
    if pressures and pressed > PRESSED_BLOCKS * len(pressures):
        blocks = f"{pressed} of {len(pressures)} blocks"
        return f"tasks waited for a CPU for over {percent(PRESSURE)} of the time in {blocks}"
    return None


def _others_share(processes: Processes) -> float | None:
    """None for older measurements, and if ranks shared the CPUs: they count as others."""
    shares = []
    for process in processes:
        share = process.measurement.others_share
        if share is None or len(process.measurement.ranks) > 1:
            return None
        shares.append(share)
    return float(np.mean(shares))


def idle_cpu(processes: Processes) -> str | None:
    """A single thread that only computes has as much CPU time as elapsed time."""
    for process in processes:
        case = process.attempt.case
        threads = process.measurement.facts.get("threads", case.threads)
        if case.device != "cpu" or case.ranks != 1 or threads != 1:
            return None
    share = sum(block.cpu_ns for block in _blocks(processes)) / _host_ns(processes)
    if share >= BUSY:
        return None
    return f"the one thread computed for {percent(share)} of the time"


def stolen(processes: Processes) -> str | None:
    recorded = [process.measurement.steal_share for process in processes]
    shares = [share for share in recorded if share is not None]
    share = float(np.mean(shares)) if shares else 0.0
    return f"the hypervisor took {percent(share)} of the CPU time" if share > STEAL else None


def _gpu_readings(processes: Processes, name: str) -> list[float]:
    readings = []
    for block in _blocks(processes):
        if block.gpu is not None and name in block.gpu:
            readings.append(block.gpu[name])
    return readings


def throttled(processes: Processes) -> str | None:
    reasons = _gpu_readings(processes, "reasons")
    hot = sum(bool(int(bits) & THERMAL_REASONS) for bits in reasons)
    if hot > HOT_BLOCKS * len(reasons):
        return f"the GPU slowed down for heat or by hardware in {hot} of {len(reasons)} blocks"
    clocks = np.array(_gpu_readings(processes, "sm_clock_mhz"))
    if len(clocks) == 0:
        return None
    usual = float(np.percentile(clocks, 90))
    slow = int(np.count_nonzero(clocks < SLOW_CLOCK * usual))
    if slow > SLOW_BLOCKS * len(clocks):
        limit = f"{percent(SLOW_CLOCK)} of {usual:.0f} MHz"
        return f"the GPU's clock was under {limit} in {slow} of {len(clocks)} blocks"
    return None


def power_capped(processes: Processes) -> str | None:
    """The normal state of a busy GPU: reported, but not held against the number."""
    reasons = _gpu_readings(processes, "reasons")
    capped = sum(bool(int(bits) & POWER_CAP) for bits in reasons)
    if capped <= CAPPED_BLOCKS * len(reasons):
        return None
    return f"the power limit was reached in {capped} of {len(reasons)} blocks"


def allocator_churn(processes: Processes) -> str | None:
    faults = per_step(processes, "faults")
    if faults < FAULTS:
        return None
    allocator = processes[0].attempt.case.allocator
    return f"{faults:.0f} page faults per step with the {allocator} allocator"


def gc_in_step(processes: Processes) -> str | None:
    share = sum(block.gc_ns for block in _blocks(processes)) / _host_ns(processes)
    return f"Python's garbage collection took {percent(share)} of the time" if share > GC else None


def swap(processes: Processes) -> str | None:
    pages = sum(block.swap_ins or 0 for block in _blocks(processes))
    return f"{pages} pages were read back from swap" if pages else None


def _health(processes: Processes, name: str) -> Any:
    """What the last process's probe recorded; None if it recorded nothing."""
    return (processes[-1].attempt.machine.get("health") or {}).get(name)


def virtualised(processes: Processes) -> str | None:
    hypervisor = _health(processes, "virtualised")
    if not hypervisor:
        return None
    # Some systems tell only that they are virtual, not by which hypervisor.
    return (
        f"a virtual machine ({hypervisor})" if isinstance(hypervisor, str) else "a virtual machine"
    )


def governor(processes: Processes) -> str | None:
    name = _health(processes, "governor")
    if not name or name == "performance":
        return None
    return f"the CPU frequency governor is {name}, not performance"


def turbo(processes: Processes) -> str | None:
    if not _health(processes, "turbo"):
        return None
    return "the CPU may raise its frequency while it is cool"


def smt_shared(processes: Processes) -> str | None:
    return "two hardware threads share a core" if _health(processes, "smt_shared") else None


def other_gpu_process(processes: Processes) -> str | None:
    count = _health(processes, "other_gpu_processes")
    if not count or processes[0].attempt.case.device == "cpu":
        return None
    return f"{count} other processes use the GPU"
