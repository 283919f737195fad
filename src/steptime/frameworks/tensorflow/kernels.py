"""Which operations a step runs, according to TensorFlow's profiler.

It reports them after the optimiser of the graph has fused and replaced them, so operations of
oneDNN have their own names (`_MklNativeFusedConv2D`)."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tensorflow as tf

MOST = 40  # names that are kept
OPERATION = re.compile(r"(?:EagerLocalExecute: |[\w/.-]+:)(?!__inference)(\w+)$")
# Only XLA writes such an event, after each of its routines.
END = "end: "
# Distinguishes equal routines of a compiled program.
NUMBER = re.compile(r"(\.\d+)+$")
NO_WORK = {"Const", "Identity", "NoOp", "ReadVariableOp", "VarHandleOp", "_EagerConst"}


def kernels_of(step: Callable[[], Any]) -> dict[str, int]:
    """Name -> calls in one step, the costliest first. Empty if the profiler fails."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            tf.profiler.experimental.start(folder)
            try:
                step()
            finally:
                tf.profiler.experimental.stop()
            events = []
            for path in Path(folder).rglob("*.xplane.pb"):
                events.extend(_events(path))
            return costliest(events)
    # Another profile may be running, or the build may lack the profiler. The measurement is valid
    # without the kernels.
    except Exception:
        return {}


def costliest(events: list[tuple[str, int]]) -> dict[str, int]:
    """`events`: names and durations of everything that the profiler saw."""
    compiled = compiled_routines(event for event, _ in events)
    counts = Counter[str]()
    times = Counter[str]()
    for event, duration in events:
        name = operation_name(event, compiled)
        if name:
            counts[name] += 1
            times[name] += duration
    return {name: counts[name] for name, _ in times.most_common(MOST)}


def compiled_routines(events: Iterable[str]) -> set[str]:
    """The names of XLA's routines among these events."""
    return {event.removeprefix(END) for event in events if event.startswith(END)}


def operation_name(event: str, compiled: set[str]) -> str:
    """The operation that an event stands for; empty if it does no work."""
    match = OPERATION.match(event)
    name = ""
    if match:
        name = match[1]
    elif event in compiled:
        name = NUMBER.sub("", event)
    return "" if name in NO_WORK else name


def _events(path: Path) -> list[tuple[str, int]]:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    events = []
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                events.append((name, event.duration_ps))
    return events
