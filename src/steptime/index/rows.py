"""Records as flat rows, one per case of a session: the names of the catalogue and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from steptime.analysis.data_type import data_type
from steptime.analysis.estimates import Estimate
from steptime.analysis.result import Result, result
from steptime.analysis.usage import usage
from steptime.core.accuracy import is_low
from steptime.core.record import Attempt, Record
from steptime.index.catalogue import DIMENSIONS, METRICS

Row = dict[str, Any]
ENDS = ("", "_low", "_high")
# Names of a row besides id and started, in the catalogue's order.
COLUMNS = (*DIMENSIONS, *(f"{name}{end}" for name in METRICS for end in ENDS))
LATENCIES = {50.0: "latency_p50", 90.0: "latency_p90", 99.0: "latency_p99"}
# Invalid results whose times are wrong. The times of other invalid results are right, but mean
# little.
WRONG_TIMES = ("unsynchronised", "implausible", "clock_drift")
REFERENCE_PRECISION = "fp32"
TOP1 = "top-1 accuracy"


def make_row(record: Record) -> Row:
    """A failure has its dimensions and no metrics."""
    row = {"id": record.attempts[0].id, "started": record.attempts[0].started}
    row |= dimensions(record)
    if not record.measurements:
        return row
    numbers = result(record)
    row["grade"] = numbers.grade
    row["unit"] = numbers.times.throughput.unit
    row["plausible"] = "no" if quarantine_reason(numbers) else "yes"
    row |= _speed(numbers)
    row |= _latencies(record, numbers)
    row |= _resources(record, numbers)
    row |= _accuracy(record)
    return row


def quarantine_reason(numbers: Result) -> str:
    """Why a result measured here cannot be true; empty if it can."""
    for flag in numbers.flags:
        if flag.level == "invalid" and flag.name in WRONG_TIMES:
            return flag.evidence
    return ""


def processing_unit(record: Record) -> str:
    """On a cluster the requested type of node; else the name of the GPU or of the processor."""
    case = record.case
    machine = record.last.machine
    if case.node_type:
        return str(case.node_type)
    device, _, number = case.device.partition(":")
    if device == "cpu":
        return str(machine.get("cpu") or case.device)
    boards = [board.get("name") for board in machine.get("gpus") or ()]
    position = int(number or 0)
    name = boards[position] if position < len(boards) else ""
    return str(name or case.device)


def hardware(record: Record) -> Row:
    """What formats of other tools tell apart, and the catalogue does not."""
    case = record.case
    machine = record.last.machine
    return {
        # The ranks of a CPU run are no accelerators.
        "accelerators": 0 if case.device == "cpu" else case.devices,
        "processor": machine.get("cpu"),
        "processors_per_node": machine.get("sockets"),
    }


def dimensions(record: Record) -> Row:
    """What is known of a run before it is measured."""
    case = record.case
    last = record.last
    version = last.software.get(case.framework, "")
    return {
        "model": case.workload,
        "phase": case.phase,
        "framework": case.framework,
        "framework_version": version,
        "mode": case.mode,
        "precision": case.precision,
        "device": processing_unit(record),
        "devices": case.devices,
        "replica_batch": case.batch_size,
        "effective_batch": case.ranks * case.batch_size,
        "data": data_type(record),
        "layout": case.layout,
        "optimizer": last.network.get("optimizer", case.optimizer),
        "threads": case.threads,
        "server": server(last),
        "launch": case.launch or None,
        "software": f"{case.framework} {version}".strip(),
        "session": record.session,
        "status": record.status,
        "plausible": "yes",
        "source": "steptime",
        "command": measuring_command(last),
        "nodes": case.nodes,
        "exchange": case.exchange if case.ranks > 1 else "",
        "interconnect": case.interconnect,
    }


def measuring_command(attempt: Attempt) -> str:
    """Workers of `compare` take turns with a partner, those of `run` have the machine alone."""
    return "compare" if attempt.pair else "run"


def server(attempt: Attempt) -> str:
    """The cluster's name of the node, else the machine's own."""
    machine = attempt.machine
    node = attempt.environment.get("slurm", {}).get("SLURMD_NODENAME")
    return str(node or machine.get("host") or machine.get("hostname", ""))


def _speed(numbers: Result) -> Row:
    times = numbers.times
    unit = times.throughput.unit
    row = _estimate("step_time", times.typical_time_seconds)
    row |= _estimate("throughput", times.throughput.aggregate[unit])
    row |= _estimate("throughput_per_device", times.throughput.per_device[unit])
    row["mean_time"] = times.speed_numbers.mean_time_seconds
    row["mean_speed"] = times.speed_numbers.mean_speed
    row["jitter"] = times.speed_numbers.speed_jitter
    row["speed_uncertainty"] = times.speed_numbers.speed_uncertainty
    row["cpu_time"] = numbers.side_channels.cpu_seconds_per_step
    row["flops"] = numbers.costs.model_flops_per_second
    return row


def _estimate(name: str, estimate: Estimate) -> Row:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _latencies(record: Record, numbers: Result) -> Row:
    if record.case.phase != "inference":
        return {}
    latencies: Row = dict.fromkeys(LATENCIES.values())
    for percentile in numbers.times.percentiles_seconds:
        if percentile.percent in LATENCIES:
            latencies[LATENCIES[percentile.percent]] = percentile.seconds
    return latencies


def _resources(record: Record, numbers: Result) -> Row:
    """What was seen besides time."""
    case = record.case
    # A start that took no time was not measured.
    row: Row = {"start_time": sum(numbers.costs.start_seconds.values()) or None}
    monitored = [seen for attempt in record.attempts if (seen := usage(attempt))]
    if case.device == "cpu":
        row["memory"] = _peak_memory(monitored)
        return row
    row["memory"] = numbers.costs.memory_bytes.get("peak_allocated_bytes")
    # The readings are of one board, so they would tell only a part about several ranks.
    if case.ranks > 1:
        return row
    readings = []
    for measurement in record.measurements:
        readings += [block.gpu for block in measurement.blocks if block.gpu]
    row["power"] = _mean(readings, "power_w")
    row["temperature"] = _mean(readings, "temperature_c")
    board = f"gpu{case.device.partition(':')[2]}.utilisation"
    row["utilisation"] = _mean([seen[board] for seen in monitored if board in seen], "mean")
    return row


def _peak_memory(monitored: Sequence[dict[str, Any]]) -> float | None:
    peaks = []
    for seen in monitored:
        if "memory_bytes" in seen and "partial" not in seen:
            peaks.append(seen["memory_bytes"]["most"])
    return max(peaks, default=None)


def _mean(readings: Sequence[dict[str, float]], name: str) -> float | None:
    values = [reading[name] for reading in readings if name in reading]
    return fmean(values) if values else None


def _accuracy(record: Record) -> Row:
    """The task's metric, and what the precision cost. Unknown without a test set."""
    if is_low(record.case.precision):
        return _accuracy_loss(record.accuracy or {})
    row: Row = {}
    if record.case.precision == REFERENCE_PRECISION:
        # The others are compared with it.
        row |= {"disagreement": 0.0, "logit_error": 0.0}
    task = record.task
    if task and task["metric"] == TOP1:
        row |= _with_ends("task_metric", task["value"], task["interval"])
        if record.case.precision == REFERENCE_PRECISION:
            row["task_loss"] = 0.0
    return row


def _accuracy_loss(accuracy: Row) -> Row:
    row: Row = {"logit_error": accuracy.get("largest_relative_error")}
    if "top1_agreement" in accuracy:
        low, high = accuracy["top1_agreement_interval"]
        row["disagreement"] = 100 * (1 - accuracy["top1_agreement"])
        row["disagreement_low"] = 100 * (1 - high)
        row["disagreement_high"] = 100 * (1 - low)
    task = accuracy.get("task") or {}
    if task.get("metric") == TOP1:
        low, high = task["change_interval"]
        row |= _with_ends("task_metric", task["after"], task.get("after_interval"))
        row["task_loss"] = -100 * task["change"]
        row["task_loss_low"] = -100 * high
        row["task_loss_high"] = -100 * low
    return row


def _with_ends(name: str, value: float, interval: Sequence[float] | None) -> Row:
    low, high = interval or (None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}
