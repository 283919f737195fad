"""`caffe time`'s logs, Caffe's and Greentea's: milliseconds of layers and of passes."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Original, Rows
from steptime.formats._parse import integer, ratio, scale

BEGINS = "*** Benchmark begins ***"
ENDS = "*** Benchmark ends ***"
AVERAGE = re.compile(r"Average (Forward pass|Backward pass|Forward-Backward): ([\d.]+) ms")
LAYER = re.compile(r"\]\s+(\S+)\s+(forward|backward): ([\d.]+) ms")
# The first dimension of the input, in three generations of logs.
BATCH = re.compile(r"(?:input_dim: (\d+)|Top shape: (\d+) |dim: (\d+))")
# The network's name in the printed prototxt.
NAME = re.compile(r'^name: "([^"]+)"', re.MULTILINE)
PHASES = {"Forward pass": "forward", "Backward pass": "backward", "Forward-Backward": "training"}


def recognises(head: bytes) -> bool:
    return b"caffe.cpp:" in head and b"net.cpp:" in head


def read(file: Original) -> Rows:
    """A log may hold several networks one after the other; each ends with its averages."""
    for position, text in enumerate(file.text.split(ENDS), 1):
        head, _, timed = text.partition(BEGINS)
        dimensions = _dimensions(file, head)
        batch = dimensions["effective_batch"]
        for name, milliseconds in AVERAGE.findall(timed):
            seconds = scale(milliseconds, 1e-3)
            metrics = {"step_time": seconds}
            if name == "Forward-Backward":
                metrics["throughput"] = ratio(batch, seconds)
            phase = {"phase": PHASES[name]}
            yield file.run(f"network {position}, {name}", dimensions | phase, metrics)
        for layer, phase_name, milliseconds in LAYER.findall(timed):
            yield file.run(
                f"network {position}, {layer} {phase_name}",
                dimensions | {"operator": layer, "phase": phase_name},
                {"step_time": scale(milliseconds, 1e-3)},
            )


def _dimensions(file: Original, head: str) -> dict[str, Any]:
    name = NAME.search(head)
    match = BATCH.search(head)
    batch = integer(next(filter(None, match.groups()), None)) if match else None
    return {
        "model": name[1] if name else file.folders.stem.removeprefix("output_"),
        "framework": "greentea" if "greentea" in file.folders.parts else "caffe",
        "devices": 1,
        "precision": "fp32",
        "replica_batch": batch,
        "effective_batch": batch,
        "suite": "convnet-benchmarks",
        "unit": "images",
    }
