"""What the kept steps of a result say. Arrays in, numbers out; knows no flags and makes no decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steptime.analysis import intervals, quantiles
from steptime.analysis.intervals import Interval
from steptime.analysis.process import Process, Span
from steptime.analysis.quantiles import PERCENTILES, Numbers, steps_needed
from steptime.core.protocol import ROBUST

OUTLIER = 5.0
BATCHES = 20


@dataclass(frozen=True)
class SpeedNumbers:
    """The four numbers of tf_cnn_benchmarks and of DL-Benchmarks-TensorFlow, exactly as their programs define them."""

    mean_time_seconds: float
    mean_speed: float
    speed_uncertainty: float
    speed_jitter: float


def speed_numbers(step_seconds: Numbers, units_per_step: float) -> SpeedNumbers:
    """In place, because there may be tens of millions of steps: it leaves them in ascending order."""
    mean_time = float(np.mean(step_seconds))
    speeds = units_per_step / step_seconds
    speeds -= np.mean(speeds)
    speeds *= speeds
    uncertainty = float(np.sqrt(np.mean(speeds))) / len(speeds) ** 0.5
    step_seconds.sort()
    np.divide(units_per_step, step_seconds[::-1], out=speeds)
    return SpeedNumbers(
        mean_time, units_per_step / mean_time, uncertainty, ROBUST * quantiles.deviation(speeds)
    )


@dataclass(frozen=True)
class Percentile:
    percent: float
    seconds: float | None  # None: too few steps for it
    steps_beyond: int
    steps_needed: int
    bound_seconds: float | None  # one-sided, 95 %: on the far side of the median


def percentiles(parts: Sequence[Process], ascending: Numbers) -> tuple[Percentile, ...]:
    """Of single steps; empty when samples are groups, whose spread is not that of steps."""
    if any(part.measurement.group > 1 for part in parts):
        return ()
    bounds = {percent: [part.order.bounds[percent] for part in parts] for percent in PERCENTILES}
    return tuple(_percentile(percent, ascending, bounds[percent]) for percent in PERCENTILES)


def _percentile(percent: float, pooled: Numbers, bounds: Sequence[float | None]) -> Percentile:
    value, needed = quantiles.percentile(pooled, percent), steps_needed(percent)
    if percent >= 50:
        beyond = len(pooled) - int(np.searchsorted(pooled, value, side="right"))
    else:
        beyond = int(np.searchsorted(pooled, value, side="left"))
    known = [bound for bound in bounds if bound is not None]
    combined = intervals.typical(np.array(known)) if len(known) == len(bounds) else None
    return Percentile(percent, value if len(pooled) >= needed else None, beyond, needed, combined)


def within_run(step_seconds: Numbers) -> Interval | None:
    """95 % by the means of 20 batches: says nothing about another process."""
    if len(step_seconds) < 2 * BATCHES:
        return None
    return intervals.student(
        np.array([part.mean() for part in np.array_split(step_seconds, BATCHES)]), 0.05
    )


def relative_spread(values: Numbers) -> float | None:
    return None if len(values) < 2 else float(np.std(values, ddof=1) / np.mean(values))


def within_spread(parts: Sequence[Process]) -> float:
    variance = np.mean([np.var(part.step_seconds) for part in parts])
    return float(variance**0.5 / np.mean([part.mean for part in parts]))


def outlier_share(parts: Sequence[Process]) -> float:
    """Steps far above the median of their own process. They are counted, and never removed."""
    beyond = 0
    for part in parts:
        mark = part.typical + OUTLIER * ROBUST * part.order.deviation
        beyond += int(np.count_nonzero(part.step_seconds > mark))
    return beyond / sum(len(part.step_seconds) for part in parts)


def slowest(parts: Sequence[Process], count: int = 5) -> list[dict[str, Any]]:
    """The slowest samples with what is known about the block in which they lie."""
    found = []
    for part in parts:
        last = np.argpartition(part.step_seconds, -min(count, len(part.step_seconds)))[-count:]
        found += [(float(part.step_seconds[i]), part, int(i) + part.measurement.cut) for i in last]
    found.sort(key=lambda entry: -entry[0])
    return [
        {
            "step_seconds": seconds,
            "process": part.attempt.process,
            "sample": sample,
            **_evidence(part, sample),
        }
        for seconds, part, sample in found[:count]
    ]


def _evidence(part: Process, sample: int) -> dict[str, Any]:
    span = next((s for s in part.spans if s.first <= sample < s.last), None)
    return {} if span is None else {"block": _block_evidence(span)}


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


def per_step(parts: Sequence[Process], name: str) -> float:
    """A side channel of the kept blocks, divided by their steps."""
    total = sum(getattr(block, name) for part in parts for block in part.blocks)
    return float(total / sum(part.block_steps for part in parts))


def queue_share(parts: Sequence[Process]) -> float | None:
    """Share of the time in which the process was ready to run and did not."""
    told = [block for part in parts for block in part.blocks if block.queue_ns is not None]
    elapsed = sum(block.host_ns for block in told)
    return sum(block.queue_ns or 0 for block in told) / elapsed if elapsed else None
