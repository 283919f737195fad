"""Every dimension and every metric that a query can name, as data. A new axis is one entry here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar


@dataclass(frozen=True)
class Dimension:
    """What runs differ in. `number`: its values have an order and a distance."""

    name: str
    label: str
    number: bool = False
    help: str = ""  # if the label alone may be misread


@dataclass(frozen=True)
class Metric:
    """What was measured. A row has it under its name.

    If it has an interval, the row also has `name_low` and `name_high`."""

    name: str
    label: str
    unit: str
    better: str  # more, or less
    # What it means in results measured here; imported ones follow their source.
    help: str = ""

    @property
    def axis(self) -> str:
        return self.axis_of("")

    def axis_of(self, counted: str) -> str:
        return f"{self.label}, {self.unit_of(counted)}" if self.unit else self.label

    def unit_of(self, counted: str) -> str:
        """The unit with what is counted, images or tokens, if that is known."""
        return self.unit.replace("units", counted.replace("_", " ") or "units")


Entry = TypeVar("Entry", Dimension, Metric)


def _by_name(entries: Iterable[Entry]) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


# Dimensions that tell repeats of one configuration apart. A point may mix them without a warning.
ALONE = ("session", "grade", "status", "plausible")
DIMENSIONS = _by_name(
    (
        Dimension("model", "Model"),
        Dimension("phase", "Phase", help="Training or inference."),
        Dimension("framework", "Framework"),
        Dimension("framework_version", "Framework version"),
        Dimension("mode", "Mode", help="How a framework runs a step: eager, compiled, graph, …"),
        Dimension("precision", "Precision"),
        Dimension(
            "device",
            "Processing unit",
            help="Its name; on a cluster the requested type of node.",
        ),
        Dimension("devices", "Number of processing units", number=True),
        Dimension("nodes", "Nodes", number=True, help="The size of the cluster."),
        Dimension("interconnect", "Interconnect"),
        Dimension("exchange", "Exchange between processing units"),
        Dimension("replica_batch", "Replica batch", number=True, help="Per processing unit."),
        Dimension(
            "effective_batch",
            "Effective batch",
            number=True,
            help="Of all processing units together.",
        ),
        Dimension(
            "data",
            "Data",
            help="Generated on the device or in memory, or real, with its storage.",
        ),
        Dimension("layout", "Layout"),
        Dimension("optimizer", "Optimizer"),
        Dimension("threads", "Threads", number=True),
        Dimension("unit", "Unit", help="What a rate counts: images, tokens, samples, …"),
        Dimension("server", "Server"),
        Dimension("launch", "Launched by"),
        Dimension("software", "Software"),
        Dimension("source", "Source", help="steptime, or the format of an import."),
        Dimension(
            "command",
            "Measured by",
            help="run, or compare, whose workers take turns with a partner.",
        ),
        Dimension("suite", "Suite"),
        Dimension("submitter", "Submitter"),
        Dimension(
            "scenario",
            "Scenario",
            help="Of MLPerf inference: offline, server, single stream, …",
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
        Dimension("plausible", "Plausible", help="no: quarantined, because it cannot be true."),
    )
)
METRICS = _by_name(
    (
        Metric("step_time", "Step time", "s", "less", "The typical time of a step, or of a batch."),
        Metric(
            "throughput",
            "Throughput",
            "units/s",
            "more",
            "Of all processing units, at the typical step time.",
        ),
        Metric("throughput_per_device", "Throughput per processing unit", "units/s", "more"),
        Metric(
            "mean_time",
            "Mean step time",
            "s",
            "less",
            "Σt / N over all kept steps of all processes; it has no interval.",
        ),
        Metric(
            "mean_speed",
            "Mean speed",
            "units/s",
            "more",
            "Of all processing units: units per step over the mean step time. It has no interval.",
        ),
        Metric("latency_p50", "Latency, median", "s", "less", "Of an inference step."),
        Metric("latency_p90", "Latency, 90th percentile", "s", "less", "Of an inference step."),
        Metric("latency_p99", "Latency, 99th percentile", "s", "less", "Of an inference step."),
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
        Metric("power", "Power", "W", "less", "The board's mean, as its sensor reports it."),
        Metric("energy", "Energy", "J", "less"),
        Metric(
            "temperature",
            "Temperature",
            "°C",
            "less",
            "The board's mean, as its sensor reports it.",
        ),
        Metric("bandwidth", "Bandwidth", "B/s", "more"),
        Metric(
            "memory",
            "Peak memory",
            "B",
            "less",
            "Allocated on a GPU; on a monitored CPU that of the whole process.",
        ),
        Metric(
            "utilisation",
            "Accelerator utilisation",
            "",
            "more",
            "The share of time in which it was busy, as a monitor saw it.",
        ),
        Metric("score", "Score", "", "more"),
        Metric(
            "start_time",
            "Start-up time",
            "s",
            "less",
            "Import, build and first step, including tracing and compiling.",
        ),
        Metric(
            "cpu_time", "CPU time per step", "s", "less", "Of one process, all threads together."
        ),
        Metric(
            "flops",
            "Network's arithmetic",
            "FLOP/s",
            "more",
            "What a step of the network needs, divided by the typical step time.",
        ),
        Metric(
            "task_metric",
            "Task metric",
            "",
            "more",
            "On the test set, in the precision of the run.",
        ),
        Metric(
            "task_loss",
            "Accuracy loss",
            "percentage points",
            "less",
            "How much the change of precision lowers the task metric.",
        ),
        Metric("disagreement", "Top-1 that differs from fp32", "%", "less"),
        Metric("logit_error", "Largest logit error relative to fp32's rms", "", "less"),
    )
)


def format_value(value: Any) -> str:
    """A value as queries and pages spell it: 64, not 64.0."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)
