"""Doubts about the machine, one rule per flag: what the side channels and the system's probe say against a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from steptime.analysis.process import Process
from steptime.analysis.statistics import per_step, queue_share
from steptime.analysis.stopping import THERMAL_REASONS
from steptime.core.format import percent
from steptime.core.measurement import Block

Parts = Sequence[Process]

QUEUE = 0.05
PRESSURE, PRESSED_BLOCKS = 0.10, 0.25
BUSY = 0.95
STEAL = 0.01
HOT_BLOCKS = 0.01
SLOW_CLOCK, SLOW_BLOCKS = 0.95, 0.10
POWER_CAP = 0x4  # NVML: software power cap
CAPPED_BLOCKS = 0.01
FAULTS = 50
GC = 0.01


def _blocks(parts: Parts) -> Iterator[Block]:
    return (block for part in parts for block in part.blocks)


def contended(parts: Parts) -> str | None:
    queue = queue_share(parts)
    if queue is not None and queue > QUEUE:
        return f"ready but not running for {percent(queue)} of the time"
    told = [block.pressure for block in _blocks(parts) if block.pressure is not None]
    pressed = sum(pressure > PRESSURE for pressure in told)
    if told and pressed > PRESSED_BLOCKS * len(told):
        return f"tasks waited for a CPU for over {percent(PRESSURE)} of the time in {pressed} of {len(told)} blocks"
    return None


def idle_cpu(parts: Parts) -> str | None:
    """One thread that only computes has as much CPU time as time: the rest it waited, or was kept waiting."""
    cases = [(part.attempt.case, part.measurement.facts) for part in parts]
    single = all(
        c.device == "cpu" and c.ranks == 1 and facts.get("threads", c.threads) == 1
        for c, facts in cases
    )
    share = sum(block.cpu_ns for block in _blocks(parts)) / max(
        1, sum(block.host_ns for block in _blocks(parts))
    )
    return (
        f"the one thread computed for {percent(share)} of the time"
        if single and share < BUSY
        else None
    )


def stolen(parts: Parts) -> str | None:
    shares = [s for part in parts if (s := part.measurement.steal_share) is not None]
    share = float(np.mean(shares)) if shares else 0.0
    return f"the hypervisor took {percent(share)} of the CPU time" if share > STEAL else None


def _gpu(parts: Parts, name: str) -> list[float]:
    return [
        block.gpu[name] for block in _blocks(parts) if block.gpu is not None and name in block.gpu
    ]


def throttled(parts: Parts) -> str | None:
    reasons = _gpu(parts, "reasons")
    hot = sum(bool(int(bits) & THERMAL_REASONS) for bits in reasons)
    if hot > HOT_BLOCKS * len(reasons):
        return f"the GPU slowed down for heat or by hardware in {hot} of {len(reasons)} blocks"
    clocks = np.array(_gpu(parts, "sm_clock_mhz"))
    if len(clocks) == 0:
        return None
    usual = float(np.percentile(clocks, 90))
    slow = int(np.count_nonzero(clocks < SLOW_CLOCK * usual))
    if slow > SLOW_BLOCKS * len(clocks):
        return f"the GPU's clock was under {percent(SLOW_CLOCK)} of {usual:.0f} MHz in {slow} of {len(clocks)} blocks"
    return None


def power_capped(parts: Parts) -> str | None:
    """The normal state of a full GPU, so it is said and not held against the number."""
    reasons = _gpu(parts, "reasons")
    capped = sum(bool(int(bits) & POWER_CAP) for bits in reasons)
    if capped <= CAPPED_BLOCKS * len(reasons):
        return None
    return f"the power limit was reached in {capped} of {len(reasons)} blocks"


def allocator_churn(parts: Parts) -> str | None:
    faults = per_step(parts, "faults")
    allocator = parts[0].attempt.case.allocator
    return (
        f"{faults:.0f} page faults per step with the {allocator} allocator"
        if faults >= FAULTS
        else None
    )


def gc_in_step(parts: Parts) -> str | None:
    share = sum(block.gc_ns for block in _blocks(parts)) / max(
        1, sum(block.host_ns for block in _blocks(parts))
    )
    return f"Python's garbage collection took {percent(share)} of the time" if share > GC else None


def swap(parts: Parts) -> str | None:
    pages = sum(block.swap_ins or 0 for block in _blocks(parts))
    return f"{pages} pages were read back from swap" if pages else None


def _health(parts: Parts, name: str) -> Any:
    """What the last process's probe told; None where it told nothing."""
    return (parts[-1].attempt.machine.get("health") or {}).get(name)


def virtualised(parts: Parts) -> str | None:
    found = _health(parts, "virtualised")
    kind = f" ({found})" if isinstance(found, str) else ""
    return f"a virtual machine{kind}" if found else None


def governor(parts: Parts) -> str | None:
    found = _health(parts, "governor")
    return (
        f"the CPU frequency governor is {found}, not performance"
        if found and found != "performance"
        else None
    )


def turbo(parts: Parts) -> str | None:
    return "the CPU may raise its frequency while it is cool" if _health(parts, "turbo") else None


def smt_shared(parts: Parts) -> str | None:
    return "two hardware threads share a core" if _health(parts, "smt_shared") else None


def other_gpu_process(parts: Parts) -> str | None:
    found = _health(parts, "other_gpu_processes")
    return (
        f"{found} other processes use the GPU"
        if found and parts[0].attempt.case.device != "cpu"
        else None
    )
