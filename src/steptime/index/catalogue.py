"""What can be asked for: every dimension and every metric, as data. A new axis is one line here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steptime.core.errors import unknown


@dataclass(frozen=True)
class Dimension:
    """What runs differ in. `number`: its values have an order and a distance."""

    name: str
    label: str
    number: bool = False
    help: str = ""  # where the label alone may be misread


@dataclass(frozen=True)
class Metric:
    """What was found. A row has it under its name, with `name_low` and `name_high` where it has an interval."""

    name: str
    label: str
    unit: str
    better: str  # more, or less
    help: str = (
        ""  # what it is, of results measured here; imported ones are as their source tells them
    )

    @property
    def axis(self) -> str:
        return self.axis_of("")

    def axis_of(self, counted: str) -> str:
        return f"{self.label}, {self.unit_of(counted)}" if self.unit else self.label

    def unit_of(self, counted: str) -> str:
        """With what is counted, images or tokens, where that is known."""
        return self.unit.replace("units", counted.replace("_", " ") or "units")


ALONE = ("session", "grade", "status", "plausible")
"""Dimensions that tell repeats of one configuration apart: a point may mix them without a word."""
DIMENSIONS = {
    dimension.name: dimension
    for dimension in (
        Dimension("model", "Model"),
        Dimension("phase", "Phase", help="Training or inference."),
        Dimension("framework", "Framework"),
        Dimension("framework_version", "Framework version"),
        Dimension("mode", "Mode", help="How a framework runs a step: eager, compiled, graph, …"),
        Dimension("precision", "Precision"),
        Dimension(
            "device",
            "Processing unit",
            help="Its name; on a cluster the kind of node that was asked for.",
        ),
        Dimension("devices", "Number of processing units", number=True),
        Dimension("nodes", "Nodes", number=True, help="The size of the cluster."),
        Dimension("interconnect", "Interconnect"),
        Dimension("exchange", "Exchange between processing units"),
        Dimension("replica_batch", "Replica batch", number=True, help="Of one processing unit."),
        Dimension(
            "effective_batch",
            "Effective batch",
            number=True,
            help="Of all processing units together.",
        ),
        Dimension(
            "data", "Data", help="Drawn on the device or in memory, or real, and where it lies."
        ),
        Dimension("layout", "Layout"),
        Dimension("optimizer", "Optimizer"),
        Dimension("threads", "Threads", number=True),
        Dimension("unit", "Unit", help="What a rate counts: images, tokens, samples, …"),
        Dimension("server", "Server"),
        Dimension("launch", "Launched by"),
        Dimension("software", "Software"),
        Dimension("source", "Source", help="Who measured: steptime, or the format of an import."),
        Dimension("suite", "Suite"),
        Dimension("submitter", "Submitter"),
        Dimension(
            "scenario", "Scenario", help="Of MLPerf's inference: offline, server, single stream, …"
        ),
        Dimension("operator", "Operator"),
        Dimension("shape", "Operator's shape"),
        Dimension("session", "Session"),
        Dimension(
            "grade",
            "Grade",
            help="How far a result measured here can be trusted: A, B, C; X is invalid.",
        ),
        Dimension("status", "Status", help="ok, or why there is no result."),
        Dimension("plausible", "Plausible", help="no: in quarantine, because it cannot be true."),
    )
}
METRICS = {
    metric.name: metric
    for metric in (
        Metric("step_time", "Step time", "s", "less", "The typical time of a step, or of a batch."),
        Metric(
            "throughput",
            "Throughput",
            "units/s",
            "more",
            "Of all processing units, at the typical step time.",
        ),
        Metric("throughput_per_device", "Throughput per processing unit", "units/s", "more"),
        Metric("mean_time", "Mean step time", "s", "less"),
        Metric(
            "mean_speed",
            "Mean speed",
            "units/s",
            "more",
            "Of all processing units, at the mean step time.",
        ),
        Metric("latency_p50", "Latency, median", "s", "less", "Of a step of inference."),
        Metric("latency_p90", "Latency, 90th percentile", "s", "less", "Of a step of inference."),
        Metric("latency_p99", "Latency, 99th percentile", "s", "less", "Of a step of inference."),
        Metric(
            "jitter",
            "Jitter of the speed",
            "units/s",
            "less",
            "1.4826 × the median absolute deviation.",
        ),
        Metric(
            "speed_uncertainty",
            "Uncertainty of the speed",
            "units/s",
            "less",
            "Its standard error.",
        ),
        Metric("accuracy", "Accuracy", "", "more"),
        Metric("loss", "Loss", "", "less"),
        Metric("time_to_accuracy", "Time to accuracy", "s", "less"),
        Metric("cost", "Cost", "$", "less"),
        Metric("power", "Power", "W", "less", "The board's mean, as it tells it itself."),
        Metric("energy", "Energy", "J", "less"),
        Metric(
            "temperature", "Temperature", "°C", "less", "The board's mean, as it tells it itself."
        ),
        Metric("bandwidth", "Bandwidth", "B/s", "more"),
        Metric(
            "memory",
            "Peak memory",
            "B",
            "less",
            "Allocated on a GPU; of the whole process on a watched CPU.",
        ),
        Metric(
            "utilisation",
            "Accelerators busy",
            "",
            "more",
            "A share of the time, as a monitor saw it.",
        ),
        Metric("score", "Score", "", "more"),
        Metric(
            "start_time",
            "Start",
            "s",
            "less",
            "Import, build and first step, with tracing and compiling.",
        ),
        Metric(
            "cpu_time", "CPU time per step", "s", "less", "Of one process, all threads together."
        ),
        Metric(
            "flops",
            "Network's arithmetic",
            "FLOP/s",
            "more",
            "What the network needs by the time that it took.",
        ),
        Metric("task_metric", "Task metric", "", "more", "After the change of precision."),
        Metric(
            "task_loss",
            "Loss of the task metric",
            "percentage points",
            "less",
            "By the change of precision.",
        ),
        Metric("disagreement", "Top-1 that differs from fp32", "%", "less"),
        Metric("logit_error", "Largest logit error of fp32's rms", "", "less"),
    )
}


def dimension(name: str) -> Dimension:
    if name not in DIMENSIONS:
        raise unknown("dimension", name, DIMENSIONS)
    return DIMENSIONS[name]


def metric(name: str) -> Metric:
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]


def word(value: Any) -> str:
    """As a question writes it and as people read it: 64, not 64.0."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)
