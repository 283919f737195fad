"""Which operations a step really runs, by TensorFlow's own profiler: after the graph's optimiser fused and replaced
them, so that those of oneDNN have their own names (`_MklNativeFusedConv2D`)."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

MOST = 40  # names that are kept
OPERATION = re.compile(r"(?:EagerLocalExecute: |[\w/.-]+:)(?!__inference)(\w+)$")
END = "end: "  # XLA writes it behind each of its routines, and nobody else does
NUMBER = re.compile(r"(\.\d+)+$")  # equal routines are told apart by one
NO_WORK = {"Const", "Identity", "NoOp", "ReadVariableOp", "VarHandleOp", "_EagerConst"}


def kernels_of(step: Callable[[], Any]) -> dict[str, int]:
    """Name -> how often in one step, the costliest first. Empty where the profiler cannot work."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            tf.profiler.experimental.start(folder)
            try:
                step()
            finally:
                tf.profiler.experimental.stop()
            return costliest(
                [event for path in Path(folder).rglob("*.xplane.pb") for event in _events(path)]
            )
    except (
        Exception
    ):  # another profile may be under way, a build may lack it: the measurement stands without
        return {}


def costliest(events: list[tuple[str, int]]) -> dict[str, int]:
    """From the names and durations of all that the profiler saw."""
    compiled = {event.removeprefix(END) for event, _ in events if event.startswith(END)}
    counts, times = Counter[str](), Counter[str]()
    for event, duration in events:
        found = OPERATION.match(event)
        name = found[1] if found else NUMBER.sub("", event) if event in compiled else ""
        if name and name not in NO_WORK:
            counts[name] += 1
            times[name] += duration
    return {name: counts[name] for name, _ in times.most_common(MOST)}


def _events(path: Path) -> list[tuple[str, int]]:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    return [
        (plane.event_metadata[event.metadata_id].name, event.duration_ps)
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    ]
