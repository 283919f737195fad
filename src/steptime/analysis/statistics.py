"""Statistics of the kept steps of a result. Arrays in, numbers out: no flags and no decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from steptime.analysis import intervals, quantiles
from steptime.analysis.process import Process, Span
from steptime.analysis.quantiles import PERCENTILES, Numbers, steps_needed
from steptime.core.protocol import ROBUST

# So many robust standard deviations above the median, a step counts as an outlier.
OUTLIER = 5.0


@dataclass(frozen=True)
class SpeedNumbers:
    """The four numbers of tf_cnn_benchmarks and DL-Benchmarks-TensorFlow, as they define them.

    Over all kept steps of all processes together."""

    mean_time_seconds: float  # Σt / N
    mean_speed: float  # units per step / mean time
    speed_uncertainty: float
    speed_jitter: float


def mean_time(processes: Sequence[Process]) -> float:
    """Σt / N over all kept steps: a sample of several steps counts as that many."""
    total = sum(process.mean * process.steps for process in processes)
    return total / sum(process.steps for process in processes)


def speed_numbers(
    step_seconds: Numbers, units_per_step: float, mean_time_seconds: float | None = None
) -> SpeedNumbers:
    """Without a mean time, that of these samples: right if all hold as many steps.

    Sorts `step_seconds` in place, because there may be tens of millions of steps."""
    if mean_time_seconds is None:
        mean_time_seconds = float(np.mean(step_seconds))
    speeds = units_per_step / step_seconds
    speeds -= np.mean(speeds)
    speeds *= speeds
    uncertainty = float(np.sqrt(np.mean(speeds))) / len(speeds) ** 0.5
    step_seconds.sort()
    np.divide(units_per_step, step_seconds[::-1], out=speeds)
    jitter = ROBUST * quantiles.deviation(speeds)
    mean_speed = units_per_step / mean_time_seconds
    return SpeedNumbers(mean_time_seconds, mean_speed, uncertainty, jitter)


@dataclass(frozen=True)
class Percentile:
    percent: float
    seconds: float | None  # None: too few steps for it
    steps_beyond: int
    steps_needed: int
    # One-sided, 95 %: on the far side of the median.
    bound_seconds: float | None


def percentiles(processes: Sequence[Process], ascending: Numbers) -> tuple[Percentile, ...]:
    """Of single steps; empty if samples are groups, whose spread is not that of steps."""
    if any(process.measurement.group > 1 for process in processes):
        return ()
    rows = []
    for percent in PERCENTILES:
        bounds = [process.order.bounds[percent] for process in processes]
        rows.append(_percentile(percent, ascending, bounds))
    return tuple(rows)


def _percentile(percent: float, ascending: Numbers, bounds: Sequence[float | None]) -> Percentile:
    value = quantiles.percentile(ascending, percent)
    needed = steps_needed(percent)
    if percent >= 50:
        beyond = len(ascending) - int(np.searchsorted(ascending, value, side="right"))
    else:
        beyond = int(np.searchsorted(ascending, value, side="left"))
    numbers = [bound for bound in bounds if bound is not None]
    combined = intervals.typical(np.array(numbers)) if len(numbers) == len(bounds) else None
    seconds = value if len(ascending) >= needed else None
    return Percentile(percent, seconds, beyond, needed, combined)


def relative_spread(values: Numbers) -> float | None:
    """Coefficient of variation; None for a single value."""
    return None if len(values) < 2 else float(np.std(values, ddof=1) / np.mean(values))


def within_spread(processes: Sequence[Process]) -> float:
    variance = np.mean([np.var(process.step_seconds) for process in processes])
    return float(variance**0.5 / np.mean([process.mean for process in processes]))


def outlier_share(processes: Sequence[Process]) -> float:
    """Steps far above the median of their process. They are counted, never removed."""
    beyond = 0
    for process in processes:
        limit = process.typical + OUTLIER * ROBUST * process.order.deviation
        beyond += int(np.count_nonzero(process.step_seconds > limit))
    return beyond / sum(len(process.step_seconds) for process in processes)


class _Sample(NamedTuple):
    seconds: float
    process: Process
    # Among all samples of the process, warm-up included.
    number: int


def slowest_samples(processes: Sequence[Process], count: int = 5) -> list[dict[str, Any]]:
    """The slowest samples, with the side channels of the blocks in which they lie."""
    samples: list[_Sample] = []
    for process in processes:
        seconds = process.step_seconds
        slowest = np.argpartition(seconds, -min(count, len(seconds)))[-count:]
        for i in slowest:
            number = int(i) + process.measurement.cut
            samples.append(_Sample(float(seconds[i]), process, number))
    samples.sort(key=lambda sample: -sample.seconds)
    return [_sample_evidence(sample) for sample in samples[:count]]


def _sample_evidence(sample: _Sample) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "step_seconds": sample.seconds,
        "process": sample.process.attempt.process,
        "sample": sample.number,
    }
    for span in sample.process.spans:
        if span.first <= sample.number < span.last:
            evidence["block"] = _block_evidence(span)
            break
    return evidence


def _block_evidence(span: Span) -> dict[str, Any]:
    block = span.block
    return {
        "seconds": block.host_ns / 1e9,
        "queue_seconds": None if block.queue_ns is None else block.queue_ns / 1e9,
        "faults": block.faults,
        "involuntary_switches": block.involuntary_switches,
        "gc_seconds": block.gc_ns / 1e9,
        "compilations": block.compilations,
        "throttle_reasons": None if block.gpu is None else block.gpu.get("reasons"),
    }


def per_step(processes: Sequence[Process], name: str) -> float:
    """A side channel of the kept blocks, divided by their steps."""
    total = sum(getattr(block, name) for process in processes for block in process.blocks)
    return float(total / sum(process.block_steps for process in processes))


def queue_share(processes: Sequence[Process]) -> float | None:
    """Share of the time in which a thread was ready to run but did not run.

    In each block the thread that waited longest counts: a step waits for its last thread. Of
    several ranks the one that waited longest counts."""
    elapsed_ns = 0
    queue_ns = 0.0
    for process in processes:
        rank_share = _longest_rank_share(process)
        for block in process.blocks:
            if rank_share is not None:
                elapsed_ns += block.host_ns
                queue_ns += rank_share * block.host_ns
            elif block.queue_ns is not None:
                elapsed_ns += block.host_ns
                queue_ns += block.queue_ns
    return queue_ns / elapsed_ns if elapsed_ns else None


def _longest_rank_share(process: Process) -> float | None:
    """None if there is one rank, or if none recorded its run queue."""
    shares = [rank.queue_share for rank in process.measurement.ranks]
    return max((share for share in shares if share is not None), default=None)


def recorded_checks(processes: Sequence[Process], name: str) -> list[float]:
    """A self-check of the engine, from the processes that recorded it."""
    values = [process.measurement.checks.get(name) for process in processes]
    return [value for value in values if value is not None]
