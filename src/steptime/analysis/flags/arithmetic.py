"""A step that computes more per second than its machine can: something was left out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from steptime.analysis.device_peaks import fastest_device, find_device, processor_peaks
from steptime.analysis.plausibility import FAST_CONVOLUTION, MARGIN
from steptime.analysis.process import Process
from steptime.core.format import with_prefix
from steptime.core.record import Attempt

# Over a measured peak: other libraries, and a clock that was raised since.
MEASURED_MARGIN = 1.25
# Boards that no table has yet, over the fastest ones that it has.
UNKNOWN_BOARD = 4.0
# As `steptime machine` names it.
MEASURED_AS = {"fp8": "fp8_e4m3"}


class Limit(NamedTuple):
    """FLOP/s that no step of a case exceeds."""

    flops_per_second: float
    # What is known of the machine, as the end of a sentence.
    evidence: str


class Work(NamedTuple):
    """FLOPs of one step."""

    counted: float
    # With the fastest algorithms.
    least: float


def implausible(processes: Sequence[Process]) -> str | None:
    """By the fastest process: one that lies spoils the result."""
    process = min(processes, key=lambda process: process.typical)
    attempt = process.attempt
    work = step_work(attempt.network)
    if work is None:
        return None
    limit = measured_limit(attempt) or theoretical_limit(attempt)
    seconds = process.typical
    if limit is None or work.least <= limit.flops_per_second * seconds:
        return None
    # A step of no time at all has no rate.
    rate = with_prefix(work.counted / max(seconds, 1e-9), "FLOP/s")
    if work.least < 0.99 * work.counted:
        least = with_prefix(work.least / max(seconds, 1e-9), "FLOP/s")
        rate += f" ({least} with the fastest algorithms)"
    return f"a step of this time computes {rate}; {limit.evidence}"


def step_work(network: dict[str, Any]) -> Work | None:
    """None: the network does no arithmetic that is counted."""
    counted = network.get("flops_per_step")
    if not counted:
        return None
    # Older records do not have it, so all their work may be convolutions.
    least = network.get("least_flops_per_step", counted / FAST_CONVOLUTION)
    return Work(counted, least)


def measured_limit(attempt: Attempt) -> Limit | None:
    """By the peak of this machine that was stored when the case ran."""
    case = attempt.case
    peaks = _measured_peaks(attempt)
    rates = peaks.get("flops_per_second", {})
    peak = rates.get(MEASURED_AS.get(case.precision, case.precision))
    if not peak:
        return None
    if case.precision not in ("fp32", "fp64"):
        # A low precision that the device does not have is computed in fp32.
        peak = max(peak, rates.get("fp32", 0.0))
    reach = f"this machine was measured to reach {with_prefix(peak, 'FLOP/s')}"
    usable = _usable_threads(attempt)
    measured_threads = peaks.get("threads")
    if case.device == "cpu" and usable and measured_threads and usable > measured_threads:
        peak *= usable / measured_threads
        reach += f" with {measured_threads} of {usable} threads"
    count = _device_count(attempt)
    evidence = f"{reach} in {case.precision}{_times(attempt, count)}"
    evidence += " (steptime machine measures it again)"
    return Limit(MEASURED_MARGIN * count * peak, evidence)


def theoretical_limit(attempt: Attempt) -> Limit | None:
    """By cores, instructions and clock of a processor, or by the maker of a board.

    None: the machine is unknown."""
    case = attempt.case
    machine = attempt.machine
    margin = MARGIN
    if case.device == "cpu":
        device = processor_peaks(machine, _usable_threads(attempt))
        name = "this processor"
    else:
        name = _board_name(attempt)
        device = find_device(name)
        if device is None:
            device = fastest_device()
            margin *= UNKNOWN_BOARD
            name = "the fastest GPU known"
    if device is None:
        return None
    count = _device_count(attempt)
    peak = device.peak(case.precision)
    evidence = (
        f"{name} cannot exceed {with_prefix(peak, 'FLOP/s')} in {case.precision}"
        f"{_times(attempt, count)} (in theory; steptime machine measures what it reaches)"
    )
    return Limit(margin * count * peak, evidence)


def _measured_peaks(attempt: Attempt) -> dict[str, Any]:
    """Of the case's device, or of another board of the same name."""
    peaks: dict[str, dict[str, Any]] = attempt.machine.get("peaks") or {}
    device = attempt.case.device
    if device in peaks or device == "cpu":
        return peaks.get(device, {})
    boards = {board.get("name") for board in attempt.machine.get("gpus") or ()}
    others = [measured for name, measured in peaks.items() if name != "cpu"]
    return others[0] if others and len(boards) == 1 else {}


def _usable_threads(attempt: Attempt) -> int | None:
    """Hardware threads that the case may use on one node; several ranks may use them all."""
    machine = attempt.machine
    threads: int | None = machine.get("threads")
    if attempt.case.ranks > 1:
        return threads
    return machine.get("threads_usable") or threads


def _device_count(attempt: Attempt) -> int:
    """Ranks on a CPU share the processors of their node."""
    case = attempt.case
    return case.nodes if case.device == "cpu" else case.ranks


def _times(attempt: Attempt, count: int) -> str:
    if count == 1:
        return ""
    return f" on each of {count} nodes" if attempt.case.device == "cpu" else f" on each of {count}"


def _board_name(attempt: Attempt) -> str:
    boards = attempt.machine.get("gpus") or ()
    index = int(attempt.case.device.partition(":")[2] or 0)
    name = boards[index].get("name") if index < len(boards) else ""
    return str(name or attempt.case.node_type or "")
