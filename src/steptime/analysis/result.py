"""A record in numbers: one typical time with its interval, side channels, flags and a grade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steptime.analysis import intervals, statistics
from steptime.analysis.autocorrelation import lag_one, rank_lag_one
from steptime.analysis.estimates import (
    Estimate,
    interval_widening,
    ordered_medians,
    typical_time,
)
from steptime.analysis.flags import Flag, flags, grade, limiting_flags
from steptime.analysis.process import Process, measured_processes
from steptime.analysis.statistics import Percentile, SpeedNumbers
from steptime.analysis.stopping import FIRST_LOOK, elapsed_seconds, set_aside
from steptime.analysis.throughput import Throughput, throughput, units_per_step
from steptime.core.errors import SteptimeError
from steptime.core.format import duration
from steptime.core.measurement import RankSamples
from steptime.core.record import Attempt, Record

SCHEMA = "steptime-result/3"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What was measured, with which software, under which protocol."""

    case: dict[str, Any]
    session: str
    network: dict[str, Any]
    software: dict[str, Any]
    protocol: dict[str, Any]
    protocol_changes: dict[str, Any]
    environment: dict[str, Any]
    # Of the latest process: threads, flags, the kernels of a step.
    facts: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Times:
    """How long a step takes, and how fast that is."""

    typical_time_seconds: Estimate
    # With the processes that were set aside; None if there are none.
    typical_time_seconds_all_processes: Estimate | None
    throughput: Throughput  # at the typical time
    # Mean time and mean speed are here alone, and have no interval: a few processes may all miss
    # the rare slow ones that make the mean. Aggregate, in the throughput's unit.
    speed_numbers: SpeedNumbers
    # How many times too small the speed uncertainty is as an error of the throughput.
    uncertainty_ratio: float | None
    units_per_step: dict[str, float]
    percentiles_seconds: tuple[Percentile, ...]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How much was measured, and how much it varies within and between processes."""

    processes: int
    steps: int
    samples: int
    steps_per_sample: int
    each_process: tuple[dict[str, Any], ...]
    set_aside: dict[str, str]
    between_process_cv: float | None
    between_process_cv_of_mean: float | None
    # Of neighbouring processes' medians, by ranks; None without an interval, as the next one.
    process_correlation: float | None
    # How much wider the typical time's interval is than that of independent processes.
    interval_widening: float | None
    within_process_cv: float
    lag_one_autocorrelation: float
    effective_samples: float
    outlier_share: float
    slowest: tuple[dict[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class SideChannels:
    """What the operating system and the engine recorded beside the clock."""

    cpu_seconds_per_step: float  # of one rank
    run_queue_share: float | None
    faults_per_step: float
    switches_per_step: float
    async_gain: float | None


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What the steps cost besides their time, and what it cost to measure them."""

    # Import, build, first_step (with tracing and compilation).
    start_seconds: dict[str, float]
    elapsed_seconds: float
    memory_bytes: dict[str, int]
    model_flops_per_second: float | None  # of all devices, at the typical time
    # Alone, of the latest process: backend, bytes, seconds.
    exchange: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Result:
    identity: Identity
    times: Times
    spread: Spread
    side_channels: SideChannels
    costs: Costs
    flags: tuple[Flag, ...]
    grade: str

    @property
    def headline(self) -> str:
        """One line for people: `12.3 ms ±1.1 % (95 %, 8 processes), grade A`."""
        typical = self.times.typical_time_seconds
        width = typical.half_width
        claim = typical.claim if width is None else "95 %"
        spread = "" if width is None else f" ±{100 * width:.2g} %"
        count = self.spread.processes
        processes = "1 process" if count == 1 else f"{count} processes"
        names = ", ".join(flag.name for flag in limiting_flags(self.flags))
        reasons = f": {names}" if names else ""
        value = duration(typical.value)
        return f"{value}{spread} ({claim}, {processes}), grade {self.grade}{reasons}"

    def to_dict(self) -> dict[str, Any]:
        """Flat: the names of the five groups are for Python only."""
        flat: dict[str, Any] = {"schema": SCHEMA, "headline": self.headline}
        for group in (self.identity, self.times, self.spread, self.side_channels, self.costs):
            flat |= asdict(group)
        flat["flags"] = tuple(asdict(flag) for flag in self.flags)
        flat["grade"] = self.grade
        return flat


def result(record: Record) -> Result:
    processes = measured_processes(record.attempts)
    if not processes:
        label, status = record.case.label, record.status
        raise SteptimeError(f"{label} has no measurement ({status}); look at its failure instead.")
    reasons = set_aside(processes)
    counted = [process for process in processes if process.attempt.id not in reasons]
    times = _times(record, processes, counted)
    raised = flags(counted)
    return Result(
        identity=_identity(counted[-1].attempt),
        times=times,
        spread=_spread(processes, counted, reasons),
        side_channels=_side_channels(counted),
        costs=_costs(record, counted, times.typical_time_seconds.value),
        flags=raised,
        grade=grade(raised, len(counted)),
    )


def _identity(attempt: Attempt) -> Identity:
    return Identity(
        case=attempt.case.to_dict(),
        session=attempt.session,
        network=attempt.network,
        software=attempt.software,
        protocol=attempt.protocol.to_dict(),
        protocol_changes=attempt.protocol.changes(),
        environment=attempt.environment,
        facts=attempt.measurement.facts if attempt.measurement else {},
    )


def _times(record: Record, processes: Sequence[Process], counted: Sequence[Process]) -> Times:
    units = units_per_step(counted[-1].attempt)
    devices = record.case.ranks
    typical = typical_time(counted)
    typical_throughput = throughput(typical, units, devices)
    main_unit = typical_throughput.unit
    pooled = np.concatenate([process.step_seconds for process in counted])
    # Sorts `pooled` in place, which the percentiles rely on.
    mean_seconds = statistics.mean_time(counted)
    numbers = statistics.speed_numbers(pooled, units[main_unit], mean_seconds)
    return Times(
        typical_time_seconds=typical,
        typical_time_seconds_all_processes=(
            typical_time(processes) if len(counted) < len(processes) else None
        ),
        throughput=typical_throughput,
        speed_numbers=numbers,
        uncertainty_ratio=uncertainty_ratio(typical_throughput.aggregate[main_unit], numbers),
        units_per_step=units,
        percentiles_seconds=statistics.percentiles(counted, pooled),
    )


def uncertainty_ratio(speed: Estimate, numbers: SpeedNumbers) -> float | None:
    """None if the speed has no interval across processes."""
    if speed.low is None or speed.high is None:
        return None
    if numbers.speed_uncertainty == 0:
        return None
    return (speed.high - speed.low) / 2 / intervals.NORMAL_95 / numbers.speed_uncertainty


def _spread(
    processes: Sequence[Process], counted: Sequence[Process], reasons: dict[str, str]
) -> Spread:
    medians = np.array([process.typical for process in counted])
    means = np.array([process.mean for process in counted])
    memories = [lag_one(process.step_seconds) for process in counted]
    correlation = None
    widening = None
    if len(counted) >= FIRST_LOOK:
        correlation = rank_lag_one(ordered_medians(counted))
        widening = interval_widening(counted)
    return Spread(
        processes=len(counted),
        steps=sum(process.steps for process in counted),
        samples=sum(len(process.step_seconds) for process in counted),
        steps_per_sample=max(process.measurement.group for process in counted),
        each_process=tuple(_process_summary(process) for process in processes),
        set_aside=reasons,
        between_process_cv=statistics.relative_spread(medians),
        between_process_cv_of_mean=statistics.relative_spread(means),
        process_correlation=correlation,
        interval_widening=widening,
        within_process_cv=statistics.within_spread(counted),
        lag_one_autocorrelation=float(np.mean(memories)),
        effective_samples=sum(process.effective_samples for process in counted),
        outlier_share=statistics.outlier_share(counted),
        slowest=tuple(statistics.slowest_samples(counted)),
    )


def _side_channels(processes: Sequence[Process]) -> SideChannels:
    ratios = statistics.recorded_checks(processes, "latency_ratio")
    return SideChannels(
        cpu_seconds_per_step=statistics.per_step(processes, "cpu_ns") / 1e9,
        run_queue_share=statistics.queue_share(processes),
        faults_per_step=statistics.per_step(processes, "faults"),
        switches_per_step=statistics.per_step(processes, "switches"),
        async_gain=float(np.median(ratios)) if ratios else None,
    )


def _costs(record: Record, processes: Sequence[Process], typical_seconds: float) -> Costs:
    latest = processes[-1].attempt
    flops = latest.network.get("flops_per_step")
    return Costs(
        start_seconds=_start_seconds(processes),
        elapsed_seconds=sum(elapsed_seconds(attempt) for attempt in record.attempts),
        memory_bytes=_memory_bytes(processes),
        model_flops_per_second=None if flops is None else flops / typical_seconds,
        exchange=latest.findings.get("exchange"),
    )


def _start_seconds(processes: Sequence[Process]) -> dict[str, float]:
    """Median over the processes that recorded this part of the start."""
    seconds: dict[str, list[float]] = {}
    for process in processes:
        for name, value in process.measurement.starts.items():
            seconds.setdefault(name, []).append(value)
    return {name: float(np.median(seconds[name])) for name in sorted(seconds)}


def _memory_bytes(processes: Sequence[Process]) -> dict[str, int]:
    """The most that any process used."""
    names = {name for process in processes for name in process.measurement.memory}
    most = {}
    for name in sorted(names):
        most[name] = max(process.measurement.memory.get(name, 0) for process in processes)
    return most


def _process_summary(process: Process) -> dict[str, Any]:
    measurement = process.measurement
    return {
        "id": process.attempt.id,
        "process": process.attempt.process,
        "typical_time_seconds": process.typical,
        "mean_time_seconds": process.mean,
        "samples": len(process.step_seconds),
        "cut": measurement.cut,
        "steps_per_sample": measurement.group,
        "steady": measurement.steady,
        "effective_samples": process.effective_samples,
        "start_seconds": dict(measurement.starts),
        "checks": dict(measurement.checks),
        "elapsed_seconds": elapsed_seconds(process.attempt),
        "ranks": [_rank_summary(rank, measurement.group) for rank in measurement.ranks],
    }


def _rank_summary(rank: RankSamples, steps_per_sample: int) -> dict[str, Any]:
    """By the rank's own clock, warm-up included: this tells a slow rank from the others."""
    elapsed_ns = rank.stamps[-1] - rank.stamps[0]
    steps = max(1, (len(rank.stamps) - 1) * steps_per_sample)
    return {
        "rank": rank.rank,
        "node": rank.node,
        "mean_time_seconds": elapsed_ns / 1e9 / steps,
        "cpu_seconds_per_step": rank.cpu_ns / 1e9 / steps,
        "run_queue_share": rank.queue_share,
        "threads": rank.threads,
        "offset_error_seconds": rank.offset_error_ns / 1e9,
    }
