"""What can be asked for: every dimension and every metric, as data. A new axis is one line here."""

from __future__ import annotations

from dataclasses import dataclass

from steptime.core.errors import unknown


@dataclass(frozen=True)
class Dimension:
    """What runs differ in. `number`: its values have an order and a distance."""

    name: str
    label: str
    number: bool = False


@dataclass(frozen=True)
class Metric:
    """What was found. A row has it under its name, with `name_low` and `name_high` where it has an interval."""

    name: str
    label: str
    unit: str
    better: str  # more, or less

    @property
    def axis(self) -> str:
        return f"{self.label}, {self.unit}" if self.unit else self.label


ALONE = ("session", "grade", "status", "plausible")
"""Dimensions that tell repeats of one configuration apart: a point may mix them without a word."""
DIMENSIONS = {
    dimension.name: dimension
    for dimension in (
        Dimension("model", "Model"),
        Dimension("phase", "Phase"),
        Dimension("framework", "Framework"),
        Dimension("framework_version", "Framework version"),
        Dimension("mode", "Mode"),
        Dimension("precision", "Precision"),
        Dimension("device", "Processing unit"),
        Dimension("devices", "Number of processing units", number=True),
        Dimension("nodes", "Nodes", number=True),
        Dimension("interconnect", "Interconnect"),
        Dimension("exchange", "Exchange between processing units"),
        Dimension("replica_batch", "Replica batch", number=True),
        Dimension("effective_batch", "Effective batch", number=True),
        Dimension("data", "Data"),
        Dimension("layout", "Layout"),
        Dimension("optimizer", "Optimizer"),
        Dimension("threads", "Threads", number=True),
        Dimension("unit", "Unit"),
        Dimension("server", "Server"),
        Dimension("launch", "Launched by"),
        Dimension("software", "Software"),
        Dimension("source", "Source"),
        Dimension("suite", "Suite"),
        Dimension("submitter", "Submitter"),
        Dimension("scenario", "Scenario"),
        Dimension("operator", "Operator"),
        Dimension("shape", "Operator's shape"),
        Dimension("session", "Session"),
        Dimension("grade", "Grade"),
        Dimension("status", "Status"),
        Dimension("plausible", "Plausible"),
    )
}
METRICS = {
    metric.name: metric
    for metric in (
        Metric("step_time", "Step time", "s", "less"),
        Metric("throughput", "Throughput", "units/s", "more"),
        Metric("throughput_per_device", "Throughput per processing unit", "units/s", "more"),
        Metric("mean_time", "Mean step time", "s", "less"),
        Metric("mean_speed", "Mean speed", "units/s", "more"),
        Metric("latency_p50", "Latency, median", "s", "less"),
        Metric("latency_p90", "Latency, 90th percentile", "s", "less"),
        Metric("latency_p99", "Latency, 99th percentile", "s", "less"),
        Metric("jitter", "Jitter of the speed", "units/s", "less"),
        Metric("speed_uncertainty", "Uncertainty of the speed", "units/s", "less"),
        Metric("accuracy", "Accuracy", "", "more"),
        Metric("loss", "Loss", "", "less"),
        Metric("time_to_accuracy", "Time to accuracy", "s", "less"),
        Metric("cost", "Cost", "$", "less"),
        Metric("power", "Power", "W", "less"),
        Metric("energy", "Energy", "J", "less"),
        Metric("temperature", "Temperature", "°C", "less"),
        Metric("bandwidth", "Bandwidth", "B/s", "more"),
        Metric("memory", "Peak memory", "B", "less"),
        Metric("utilisation", "Accelerators busy", "", "more"),
        Metric("score", "Score", "", "more"),
        Metric("cpu_time", "CPU time per step", "s", "less"),
        Metric("flops", "Network's arithmetic", "FLOP/s", "more"),
        Metric("task_metric", "Task metric", "", "more"),
        Metric("task_loss", "Loss of the task metric", "percentage points", "less"),
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
