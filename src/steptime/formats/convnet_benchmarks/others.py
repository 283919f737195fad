"""The logs that have a form of their own: TensorFlow, neon, ccv, convnet.js."""

from __future__ import annotations

import re
from typing import Any

from steptime.core.foreign import ForeignRun
from steptime.formats import Original, Rows
from steptime.formats._parse import first_match, number, scale

TENSORFLOW = re.compile(
    r"^(?P<time>\S+ \S+): (?P<pass>Forward|Forward-backward) across (?P<steps>\d+) steps,"
    r" (?P<mean>[\d.]+) \+/- (?P<deviation>[\d.]+) sec / batch"
)
NEON = re.compile(
    r"^\| (?P<pass>fprop|bprop|iteration) +\| +(?P<mean>[\d.]+) +\| +([\d.]+) +\| +([\d.]+)"
    r" +\| +([\d.]+) +\| +(?P<unit>\w+)"
)
NEON_UNITS = {"msec": 1e-3, "usec": 1e-6}
CCV = re.compile(r"elapsed time for layer (\d+) fprop: ([\d.]+) milliseconds")
CONVNET_JS = re.compile(r"^total: ([\d.]+)ms", re.MULTILINE)
PHASES = {
    "Forward": "forward",
    "Forward-backward": "training",
    "fprop": "forward",
    "bprop": "backward",
    "iteration": "training",
}
NETWORKS = ("alexnet", "overfeat", "vgga", "vgg_a", "googlenet")
# neon's script runs the networks in this order and does not print their names.
NEON_ORDER = (("alexnet", 128), ("overfeat", 128), ("vgga", 64), ("googlenet", 128))
# Networks with a batch other than the usual one.
BATCHES = {"vgga": 64, "vgg_a": 64}
BATCH = 128
MARKS = (
    b" sec / batch",
    b"|    Func     |",
    b"elapsed time for layer",
    b"Estimating full batch to take",
)


def recognises(head: bytes) -> bool:
    return any(mark in head for mark in MARKS)


def read(file: Original) -> Rows:
    device = first_match(r"^name: (.+)$", file.text)
    neon_networks = 0
    for number_of_line, line in enumerate(file.text.splitlines(), 1):
        location = f"line {number_of_line}"
        if match := TENSORFLOW.match(line):
            yield _read_tensorflow(file, location, match, device)
        elif match := NEON.match(line):
            yield _read_neon(file, location, match, neon_networks)
            if match["pass"] == "iteration":
                neon_networks += 1
        elif match := CCV.search(line):
            layer = {"framework": "ccv", "shape": f"L{match[1]}"}
            yield _read_layer(file, location, layer, match[2])
        elif match := CONVNET_JS.match(line):
            yield _read_layer(file, location, {"framework": "convnet.js"}, match[1])


def _read_tensorflow(
    file: Original, location: str, match: re.Match[str], device: str
) -> ForeignRun:
    """Its timer sums 99 steps and divides by 100.

    So the mean is 1 % too small, and the deviation comes from that alone."""
    model = next((name for name in NETWORKS if name in file.folders.name), "")
    steps = int(match["steps"])
    printed = number(match["mean"])
    mean = printed
    if printed is not None and steps > 1:
        mean = printed * steps / (steps - 1)
    dimensions = {
        "framework": "tensorflow",
        "model": model,
        "phase": PHASES[match["pass"]],
        "device": device,
    }
    defect = (
        f"{steps - 1} steps were summed and divided by {steps}: corrected, "
        "and the deviation dropped"
    )
    return file.run(
        location,
        _with_batch(file, dimensions, BATCHES.get(model, BATCH)),
        _metrics(dimensions["phase"], BATCHES.get(model, BATCH), mean),
        more={"printed_step_time": printed, "printed_deviation": number(match["deviation"])},
        started=match["time"].replace(" ", "T"),
        defects=(defect,),
    )


def _read_neon(file: Original, location: str, match: re.Match[str], position: int) -> ForeignRun:
    model, batch = NEON_ORDER[min(position, len(NEON_ORDER) - 1)]
    seconds = scale(match["mean"], NEON_UNITS.get(match["unit"], 1.0))
    phase = PHASES[match["pass"]]
    dimensions = {"framework": "neon", "model": model, "phase": phase}
    return file.run(location, _with_batch(file, dimensions, batch), _metrics(phase, batch, seconds))


def _read_layer(
    file: Original, location: str, layer: dict[str, Any], milliseconds: str
) -> ForeignRun:
    dimensions = layer | {"operator": "convolution", "phase": "forward"}
    metrics = _metrics("forward", BATCH, scale(milliseconds, 1e-3))
    return file.run(location, _with_batch(file, dimensions, BATCH), metrics)


def _metrics(phase: str, batch: int, seconds: float | None) -> dict[str, float | None]:
    metrics = {"step_time": seconds}
    if phase != "backward" and seconds:
        metrics["throughput"] = batch / seconds
    return metrics


def _with_batch(file: Original, dimensions: dict[str, Any], batch: int) -> dict[str, Any]:
    return dimensions | {
        "suite": "convnet-benchmarks",
        "unit": "images",
        "devices": 1,
        "replica_batch": batch,
        "effective_batch": batch,
        "precision": "fp16" if "fp16" in file.folders.name else "fp32",
    }
