"""`caffe time`'s logs, Caffe's and Greentea's: milliseconds of layers and of whole passes."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Found, Original
from steptime.formats._parse import scaled, whole

BEGINS = "*** Benchmark begins ***"
AVERAGE = re.compile(r"Average (Forward pass|Backward pass|Forward-Backward): ([\d.]+) ms")
LAYER = re.compile(r"\]\s+(\S+)\s+(forward|backward): ([\d.]+) ms")
BATCH = re.compile(r"(?:input_dim: (\d+)|Top shape: (\d+) |dim: (\d+))")
NAME = re.compile(r'^name: "([^"]+)"', re.MULTILINE)
DEVICE = re.compile(r"Use (?:GPU with device ID|GPU device) (\S+)|Using GPUs? (\S+)")
PHASES = {"Forward pass": "forward", "Backward pass": "backward", "Forward-Backward": "training"}


def recognises(head: bytes) -> bool:
    return b"caffe.cpp:" in head and b"net.cpp:" in head


def read(file: Original) -> Found:
    """A log may hold several networks one after the other; each ends with its averages."""
    start = 0
    for n, part in enumerate(re.split(r"\*\*\* Benchmark ends \*\*\*", file.text), 1):
        head, _, timed = part.partition(BEGINS)
        told = _told(file, head)
        for kind, milliseconds in AVERAGE.findall(timed):
            seconds = scaled(milliseconds, 1e-3)
            batch = told["effective_batch"]
            speed = batch / seconds if kind == "Forward-Backward" and batch and seconds else None
            metrics = {"step_time": seconds, "throughput": speed}
            yield file.run(f"network {n}, {kind}", told | {"phase": PHASES[kind]}, metrics)
        for layer, phase, milliseconds in LAYER.findall(timed):
            dimensions = told | {"operator": layer, "phase": phase}
            yield file.run(
                f"network {n}, {layer} {phase}",
                dimensions,
                {"step_time": scaled(milliseconds, 1e-3)},
            )
        start += len(part)


def _told(file: Original, head: str) -> dict[str, Any]:
    found, name = BATCH.search(head), NAME.search(head)
    batch = whole(next(filter(None, found.groups()), None)) if found else None
    return {
        "model": name[1] if name else file.folders.stem.removeprefix("output_"),
        "framework": "greentea" if "greentea" in file.folders.parts else "caffe", "devices": 1, "precision": "fp32",
        "replica_batch": batch, "effective_batch": batch, "suite": "convnet-benchmarks", "unit": "images",
    }  # fmt: skip
