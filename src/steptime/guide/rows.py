"""Records as flat rows, one per case of a session: the names of the catalogue and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steptime.analysis.data_type import data_type
from steptime.analysis.result import Result, result
from steptime.analysis.throughput import Estimate
from steptime.core.record import Attempt, Record
from steptime.guide.catalogue import DIMENSIONS, METRICS

Row = dict[str, Any]
ENDS = ("", "_low", "_high")
COLUMNS = {**dict.fromkeys(DIMENSIONS), **dict.fromkeys(f"{name}{end}" for name in METRICS for end in ENDS)}
"""Names of a row beside id and started, in the catalogue's order."""


def rows(records: Iterable[Record]) -> list[Row]:
    return [row(record) for record in records]


def row(record: Record) -> Row:
    """A failure has its dimensions and no metrics."""
    found = {"id": record.attempts[0].id, "started": record.attempts[0].started, **_dimensions(record)}
    if not record.measurements:
        return found
    numbers = result(record)
    return {**found, "grade": numbers.grade, "unit": numbers.throughput.unit, **_speed(numbers), **_price(record)}


def _dimensions(record: Record) -> Row:
    case, last = record.case, record.last
    version = last.software.get(case.framework, "")
    return {
        "model": case.workload,
        "phase": case.phase,
        "framework": case.framework,
        "framework_version": version,
        "mode": case.mode,
        "precision": case.precision,
        "device": case.node_type or case.device,  # on a cluster: the kind of node that was asked for
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
    speed = numbers.throughput.aggregate[numbers.throughput.unit]
    found = {**_told("step_time", numbers.typical_time_seconds), **_told("throughput", speed)}
    found |= _told("throughput_per_device", numbers.throughput.per_device[numbers.throughput.unit])
    mean = numbers.mean_throughput.aggregate[numbers.mean_throughput.unit]
    found |= {**_told("mean_time", numbers.mean_time_seconds), **_told("mean_speed", mean)}
    spread = numbers.speed_numbers
    found |= {"jitter": spread.speed_jitter, "speed_uncertainty": spread.speed_uncertainty}
    return {**found, "cpu_time": numbers.cpu_seconds_per_step, "flops": numbers.model_flops_per_second}


def _told(name: str, estimate: Estimate) -> Row:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _price(record: Record) -> Row:
    """What the precision cost. fp32 is what the others are compared to, so its price is nothing."""
    if record.case.precision in ("fp32", "fp64"):
        return {"task_loss": 0.0, "disagreement": 0.0, "logit_error": 0.0}
    part: Row = next((a.findings["accuracy"] for a in record.attempts if "accuracy" in a.findings), {})
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
