"""A record in numbers: one typical time with its interval, everything beside it, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steptime.analysis import intervals, statistics
from steptime.analysis.autocorrelation import lag_one
from steptime.analysis.flags import OWN_METRIC, Flag, flags, grade
from steptime.analysis.process import Process, processes
from steptime.analysis.quantiles import Numbers, deviation
from steptime.analysis.statistics import Percentile, SpeedNumbers
from steptime.analysis.stopping import elapsed_seconds, set_aside
from steptime.analysis.throughput import Estimate, Throughput, throughput, units_per_step
from steptime.core.errors import SteptimeError
from steptime.core.format import duration
from steptime.core.measurement import RankSamples
from steptime.core.protocol import ROBUST
from steptime.core.record import Attempt, Record

SCHEMA = "steptime-result/1"
DISTURBED = 5.0
OPTIMISTIC = "disturbed: may be optimistic"
WITHIN = "within this run"
ACROSS = "95 % across processes"


@dataclass(frozen=True, kw_only=True)
class Result:
    case: dict[str, Any]
    session: str
    network: dict[str, Any]
    software: dict[str, Any]
    protocol: dict[str, Any]
    protocol_changes: dict[str, Any]
    typical_time_seconds: Estimate
    typical_time_seconds_all_processes: (
        Estimate | None
    )  # with those set aside, where there are such
    mean_time_seconds: Estimate
    throughput: Throughput  # at the typical time
    mean_throughput: Throughput
    speed_numbers: SpeedNumbers  # aggregate, in the throughput's unit
    uncertainty_ratio: (
        float | None
    )  # how many times too small the speed uncertainty is as an error of this result
    units_per_step: dict[str, float]
    percentiles_seconds: tuple[Percentile, ...]
    processes: int
    steps: int
    samples: int
    steps_per_sample: int
    each_process: tuple[dict[str, Any], ...]
    set_aside: dict[str, str]
    between_process_cv: float | None
    between_process_cv_of_mean: float | None
    within_process_cv: float
    lag_one_autocorrelation: float
    effective_samples: float
    outlier_share: float
    slowest: tuple[dict[str, Any], ...]
    cpu_seconds_per_step: float  # of one rank
    run_queue_share: float | None
    faults_per_step: float
    switches_per_step: float
    start_seconds: dict[str, float]  # import, build, first_step (tracing and compiling are in it)
    elapsed_seconds: float
    memory_bytes: dict[str, int]
    facts: dict[str, Any]  # of the latest process: threads, flags, the kernels of a step
    environment: dict[str, Any]
    model_flops_per_second: float | None  # of all devices
    exchange: dict[str, Any] | None  # alone, of the latest process: backend, bytes, seconds
    async_gain: float | None
    flags: tuple[Flag, ...]
    grade: str

    @property
    def headline(self) -> str:
        """One line for people: `12.3 ms ±1.1 % (95 %, 8 processes), grade A`."""
        width = self.typical_time_seconds.half_width
        sure, claim = (
            (f" ±{100 * width:.2g} %", "95 %")
            if width is not None
            else ("", self.typical_time_seconds.claim)
        )
        count = "1 process" if self.processes == 1 else f"{self.processes} processes"
        names = ", ".join(
            flag.name for flag in self.flags if flag.level != "note" and flag.name not in OWN_METRIC
        )
        value = duration(self.typical_time_seconds.value)
        return f"{value}{sure} ({claim}, {count}), grade {self.grade}{names and ': ' + names}"

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "headline": self.headline, **asdict(self)}


def result(record: Record) -> Result:
    everyone = processes(record.attempts)
    if not everyone:
        raise SteptimeError(
            f"{record.case.label} has no measurement ({record.status}); look at its failure instead."
        )
    aside = set_aside(everyone)
    parts = tuple(part for part in everyone if part.attempt.id not in aside)
    units, devices = units_per_step(parts[-1].attempt), record.case.ranks
    typical, mean = typical_time(parts), mean_time(parts)
    mean_speed = throughput(mean, units, devices)
    pooled = np.concatenate([part.step_seconds for part in parts])
    numbers = statistics.speed_numbers(pooled, units[mean_speed.unit])
    doubts = flags(parts)
    return Result(
        **_identity(parts[-1].attempt),
        **_spread(parts),
        **_side_channels(parts),
        **_costs(record, parts, numbers.mean_time_seconds),
        typical_time_seconds=typical,
        typical_time_seconds_all_processes=typical_time(everyone) if aside else None,
        mean_time_seconds=mean,
        throughput=throughput(typical, units, devices),
        mean_throughput=mean_speed,
        speed_numbers=numbers,
        uncertainty_ratio=uncertainty_ratio(mean_speed.aggregate[mean_speed.unit], numbers),
        units_per_step=units,
        percentiles_seconds=statistics.percentiles(parts, pooled),
        each_process=tuple(_process(part) for part in everyone),
        set_aside=aside,
        flags=doubts,
        grade=grade(doubts, len(parts)),
    )


def typical_time(parts: Sequence[Process]) -> Estimate:
    """Hodges–Lehmann over the processes' medians; below six processes no interval across them is claimed."""
    medians = np.array([part.typical for part in parts])
    interval = intervals.signed_rank(medians, parts[-1].attempt.protocol.look_alpha)
    if interval is None:
        return Estimate(intervals.typical(medians), None, None, "no interval: too few processes")
    return Estimate(interval.centre, interval.low, interval.high, ACROSS)


def mean_time(parts: Sequence[Process]) -> Estimate:
    means = np.array([part.mean for part in parts])
    if len(parts) < 6:
        return _within_run(parts, means)
    interval = intervals.student(means, parts[-1].attempt.protocol.look_alpha)
    assert interval is not None
    claim = f"{ACROSS}, {OPTIMISTIC}" if disturbed(means) else ACROSS
    return Estimate(interval.centre, interval.low, interval.high, claim)


def _within_run(parts: Sequence[Process], means: Numbers) -> Estimate:
    """Few processes: only the wobble inside them is known. The widest of them speaks."""
    inside = [interval for part in parts if (interval := statistics.within_run(part.step_seconds))]
    centre = float(means.mean())
    if len(inside) < len(parts):
        return Estimate(centre, None, None, "no interval: too few samples")
    reach = max(interval.half_width for interval in inside)
    return Estimate(centre, centre * (1 - reach), centre * (1 + reach), WITHIN)


def disturbed(means: Numbers) -> bool:
    """One process far above the others: Student's interval is then too hopeful."""
    return bool(means.max() > np.median(means) + DISTURBED * ROBUST * deviation(np.sort(means)))


def uncertainty_ratio(speed: Estimate, numbers: SpeedNumbers) -> float | None:
    if (
        speed.claim == WITHIN
        or speed.low is None
        or speed.high is None
        or numbers.speed_uncertainty == 0
    ):
        return None
    return (speed.high - speed.low) / 2 / intervals.NORMAL_95 / numbers.speed_uncertainty


def _identity(attempt: Attempt) -> dict[str, Any]:
    return {
        "case": attempt.case.to_dict(),
        "session": attempt.session,
        "network": attempt.network,
        "software": attempt.software,
        "protocol": attempt.protocol.to_dict(),
        "protocol_changes": attempt.protocol.changed(),
        "environment": attempt.environment,
        "facts": attempt.measurement.facts if attempt.measurement else {},
    }


def _spread(parts: Sequence[Process]) -> dict[str, Any]:
    return {
        "processes": len(parts),
        "samples": sum(len(part.step_seconds) for part in parts),
        "steps": sum(len(part.step_seconds) * part.measurement.group for part in parts),
        "steps_per_sample": max(part.measurement.group for part in parts),
        "between_process_cv": statistics.relative_spread(
            np.array([part.typical for part in parts])
        ),
        "between_process_cv_of_mean": statistics.relative_spread(
            np.array([part.mean for part in parts])
        ),
        "within_process_cv": statistics.within_spread(parts),
        "lag_one_autocorrelation": float(np.mean([lag_one(part.step_seconds) for part in parts])),
        "effective_samples": sum(part.effective_samples for part in parts),
        "outlier_share": statistics.outlier_share(parts),
        "slowest": tuple(statistics.slowest(parts)),
    }


def _side_channels(parts: Sequence[Process]) -> dict[str, Any]:
    ratios = [
        ratio
        for part in parts
        if (ratio := part.measurement.checks.get("latency_ratio")) is not None
    ]
    return {
        "cpu_seconds_per_step": statistics.per_step(parts, "cpu_ns") / 1e9,
        "run_queue_share": statistics.queue_share(parts),
        "faults_per_step": statistics.per_step(parts, "faults"),
        "switches_per_step": statistics.per_step(parts, "switches"),
        "async_gain": float(np.median(ratios)) if ratios else None,
    }


def _costs(record: Record, parts: Sequence[Process], mean_seconds: float) -> dict[str, Any]:
    starts = {name for part in parts for name in part.measurement.starts}
    memory = {name for part in parts for name in part.measurement.memory}
    flops = parts[-1].attempt.network.get("flops_per_step")
    return {
        "start_seconds": {
            name: float(
                np.median([s[name] for part in parts if name in (s := part.measurement.starts)])
            )
            for name in sorted(starts)
        },
        "memory_bytes": {
            name: max(part.measurement.memory.get(name, 0) for part in parts)
            for name in sorted(memory)
        },
        "elapsed_seconds": sum(elapsed_seconds(attempt) for attempt in record.attempts),
        "model_flops_per_second": None if flops is None else flops / mean_seconds,
        "exchange": parts[-1].attempt.findings.get("exchange"),
    }


def _process(part: Process) -> dict[str, Any]:
    measurement = part.measurement
    return {
        "id": part.attempt.id,
        "process": part.attempt.process,
        "typical_time_seconds": part.typical,
        "mean_time_seconds": part.mean,
        "samples": len(part.step_seconds),
        "cut": measurement.cut,
        "steps_per_sample": measurement.group,
        "steady": measurement.steady,
        "effective_samples": part.effective_samples,
        "start_seconds": dict(measurement.starts),
        "checks": dict(measurement.checks),
        "elapsed_seconds": elapsed_seconds(part.attempt),
        "ranks": [_rank(part, rank) for rank in measurement.ranks],
    }


def _rank(part: Process, rank: RankSamples) -> dict[str, Any]:
    """By its own clock, warm-up included: what tells a slow rank from the others."""
    elapsed, steps = (
        rank.stamps[-1] - rank.stamps[0],
        (len(rank.stamps) - 1) * part.measurement.group,
    )
    return {
        "rank": rank.rank,
        "node": rank.node,
        "mean_time_seconds": elapsed / 1e9 / max(1, steps),
        "cpu_seconds_per_step": rank.cpu_ns / 1e9 / max(1, steps),
        "run_queue_share": None if rank.queue_ns is None else rank.queue_ns / max(1, elapsed),
        "threads": rank.threads,
        "offset_error_seconds": rank.offset_error_ns / 1e9,
    }
