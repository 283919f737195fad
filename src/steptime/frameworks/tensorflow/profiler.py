"""Steps under TensorFlow's profiler: its planes and lines as trace events, operations by their
self time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from steptime.core.errors import Unsupported
from steptime.core.inspection import BETWEEN, Operator, StepProfile, self_operators
from steptime.frameworks.tensorflow.kernels import compiled_routines, operation_name

Event = dict[str, Any]  # of Chrome's trace format


def profile_steps(step: Callable[[], Any], steps: int) -> StepProfile:
    events: list[Event] = []
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        begin = time.perf_counter()
        for _ in range(steps):
            with tf.profiler.experimental.Trace("step"):
                step()
        seconds = time.perf_counter() - begin
        tf.profiler.experimental.stop()
        for path in Path(folder).rglob("*.xplane.pb"):
            events.extend(_events(path))
    return summarize(events, seconds)


def summarize(events: list[Event], seconds: float) -> StepProfile:
    compiled = compiled_routines(event["name"] for event in events)
    thread_names = [event for event in events if event["ph"] == "M"]
    spans = [event for event in events if _is_span(event)]
    operators = self_operators(spans, lambda span: operation_name(span["name"], compiled))
    if not operators:
        raise Unsupported("TensorFlow's profiler saw no operation.")
    # Operations may run on several threads at once. Their sum then exceeds the time of the steps,
    # and nothing is left between them.
    rest = max(0.0, seconds - sum(operator.seconds for operator in operators))
    between = Operator(BETWEEN, 0, rest)
    return StepProfile((*operators, between), [*thread_names, *spans], seconds)


def _is_span(event: Event) -> bool:
    # Names that begin with $ are calls of Python functions.
    return event["ph"] == "X" and bool(event["dur"]) and not event["name"].startswith("$")


def _events(path: Path) -> Iterator[Event]:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    for process, plane in enumerate(space.planes):
        for line in plane.lines:
            thread = {"pid": process, "tid": line.id}
            thread_name = {"name": line.name or plane.name}
            yield {"ph": "M", "name": "thread_name", "args": thread_name} | thread
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                begin = line.timestamp_ns / 1e3 + event.offset_ps / 1e6
                duration = event.duration_ps / 1e6
                yield {"ph": "X", "name": name, "ts": begin, "dur": duration} | thread
