"""Records as flat rows, one per case of a session: the names of the catalogue and nothing else."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from steptime.analysis.data_type import data_type
from steptime.analysis.estimates import Estimate
from steptime.analysis.plausibility import find_device, implausible_reason, processor_peaks
from steptime.analysis.result import Result, result
from steptime.analysis.usage import usage
from steptime.core.record import Attempt, Record
from steptime.index.catalogue import DIMENSIONS, METRICS

Row = dict[str, Any]
ENDS = ("", "_low", "_high")
COLUMNS = {
    **dict.fromkeys(DIMENSIONS),
    **dict.fromkeys(f"{name}{end}" for name in METRICS for end in ENDS),
}
"""Names of a row beside id and started, in the catalogue's order."""
LATENCIES = {50.0: "latency_p50", 90.0: "latency_p90", 99.0: "latency_p99"}
UNTRUE = ("unsynchronised", "clock_drift")
"""Invalid results whose times are wrong; of others that are invalid, times are right and mean little."""


def make_row(record: Record) -> Row:
    """A failure has its dimensions and no metrics."""
    found = {
        "id": record.attempts[0].id,
        "started": record.attempts[0].started,
        **dimensions(record),
    }
    if not record.measurements:
        return found
    numbers = result(record)
    found |= {"grade": numbers.grade, "unit": numbers.times.throughput.unit}
    found |= {"plausible": "no" if quarantine_reason(record, numbers) else "yes"}
    return {**found, **_speed(numbers), **_beside(record, numbers), **_price(record)}


def quarantine_reason(record: Record, numbers: Result) -> str:
    """Why a result measured here cannot be true; nothing where it can. A network may hold convolutions, which quick
    algorithms compute with less arithmetic."""
    for flag in numbers.flags:
        if flag.level == "invalid" and flag.name in UNTRUE:
            return flag.evidence
    case, flops = record.case, numbers.costs.model_flops_per_second
    on_cpu = case.device == "cpu"  # whose ranks share one node's processors
    told = {
        "precision": case.precision,
        "devices": case.nodes if on_cpu else case.ranks,
        "operator": "convolution",
    }
    device = (
        processor_peaks(record.last.machine) if on_cpu else find_device(processing_unit(record))
    )
    return implausible_reason(told, {} if flops is None else {"flops": flops}, device)


def processing_unit(record: Record) -> str:
    """On a cluster the kind of node that was asked for; else what the board, or the processor, calls itself."""
    case, machine = record.case, record.last.machine
    kind, _, number = case.device.partition(":")
    boards = [board.get("name") for board in machine.get("gpus") or ()]
    name = machine.get("cpu") if kind == "cpu" else next(iter(boards[int(number or 0) :]), "")
    return str(case.node_type or name or case.device)


def dimensions(record: Record) -> Row:
    """What is known of a run before it is measured."""
    case, last = record.case, record.last
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
        "data": data_type(record) if case.data == "real" else case.staging or data_type(record),
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
        "nodes": case.nodes,
        "exchange": case.exchange if case.ranks > 1 else "",
        "interconnect": case.interconnect,
    }


def server(last: Attempt) -> str:
    """A cluster's own name of the node, else the machine's."""
    node = last.environment.get("slurm", {}).get("SLURMD_NODENAME")
    return str(node or last.machine.get("host") or last.machine.get("hostname", ""))


def _speed(numbers: Result) -> Row:
    speed = numbers.times.throughput.aggregate[numbers.times.throughput.unit]
    found = {**_told("step_time", numbers.times.typical_time_seconds), **_told("throughput", speed)}
    found |= _told(
        "throughput_per_device", numbers.times.throughput.per_device[numbers.times.throughput.unit]
    )
    mean = numbers.times.mean_throughput.aggregate[numbers.times.mean_throughput.unit]
    found |= {**_told("mean_time", numbers.times.mean_time_seconds), **_told("mean_speed", mean)}
    spread = numbers.times.speed_numbers
    found |= {"jitter": spread.speed_jitter, "speed_uncertainty": spread.speed_uncertainty}
    return {
        **found,
        "cpu_time": numbers.side_channels.cpu_seconds_per_step,
        "flops": numbers.costs.model_flops_per_second,
    }


def _beside(record: Record, numbers: Result) -> Row:
    """What was seen besides time. A board's readings are of one board: of several ranks they would tell a part."""
    found: Row = {"start_time": sum(numbers.costs.start_seconds.values()) or None}
    if record.case.phase == "inference":
        told = {
            LATENCIES.get(one.percent): one.seconds for one in numbers.times.percentiles_seconds
        }
        found |= {name: told.get(name) for name in LATENCIES.values()}
    seen = [watched for attempt in record.attempts if (watched := usage(attempt))]
    if record.case.device == "cpu":
        peaks = [
            one["memory_bytes"]["most"]
            for one in seen
            if "memory_bytes" in one and "partial" not in one
        ]
        return {**found, "memory": max(peaks, default=None)}
    found["memory"] = numbers.costs.memory_bytes.get("peak_allocated_bytes")
    if record.case.ranks > 1:
        return found
    readings = [block.gpu for one in record.measurements for block in one.blocks if block.gpu]
    for name, channel in (("power", "power_w"), ("temperature", "temperature_c")):
        found[name] = _mean([reading[channel] for reading in readings if channel in reading])
    board = f"gpu{record.case.device.partition(':')[2]}.utilisation"
    return {**found, "utilisation": _mean([one[board]["mean"] for one in seen if board in one])}


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _told(name: str, estimate: Estimate) -> Row:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _price(record: Record) -> Row:
    """What the precision cost. fp32 is what the others are compared to, so its price is nothing."""
    if record.case.precision in ("fp32", "fp64"):
        return {"task_loss": 0.0, "disagreement": 0.0, "logit_error": 0.0}
    part: Row = next(
        (a.findings["accuracy"] for a in record.attempts if "accuracy" in a.findings), {}
    )
    found: Row = {"logit_error": part.get("largest_relative_error")}
    if "top1_agreement" in part:
        low, high = part["top1_agreement_interval"]
        agreed = part["top1_agreement"]
        found |= {"disagreement": 100 * (1 - agreed), "disagreement_low": 100 * (1 - high)}
        found["disagreement_high"] = 100 * (1 - low)
    task = part.get("task") or {}
    if task.get("metric") == "top-1 accuracy":
        low, high = task["change_interval"]
        found |= {"task_metric": task["after"], "task_loss": -100 * task["change"]}
        found |= {"task_loss_low": -100 * high, "task_loss_high": -100 * low}
    return found
