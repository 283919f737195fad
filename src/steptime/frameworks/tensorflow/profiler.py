"""Steps under TensorFlow's own profiler: its planes and lines as trace events, operations by their own time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from steptime.core.errors import Unsupported
from steptime.core.inspection import BETWEEN, Operator, Watched, self_operators
from steptime.frameworks.tensorflow.kernels import END, NO_WORK, NUMBER, OPERATION


def watch(step: Callable[[], Any], steps: int) -> Watched:
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        begin = time.perf_counter()
        for _ in range(steps):
            with tf.profiler.experimental.Trace("step"):
                step()
        seconds = time.perf_counter() - begin
        tf.profiler.experimental.stop()
        events = [event for path in Path(folder).rglob("*.xplane.pb") for event in _events(path)]
    return seen(events, seconds)


def seen(events: list[dict[str, Any]], seconds: float) -> Watched:
    compiled = {
        event["name"].removeprefix(END) for event in events if event["name"].startswith(END)
    }
    spans = [
        event
        for event in events
        if event["ph"] == "X" and event["dur"] and not event["name"].startswith("$")
    ]
    found = [
        one for one in self_operators(spans, lambda event: _operation(event["name"], compiled))
    ]
    if not found:
        raise Unsupported("TensorFlow's profiler saw no operation.")
    # Operations run on several threads at a time; then they fill more than the steps and nothing lies between.
    rest = Operator(BETWEEN, 0, max(0.0, seconds - sum(one.seconds for one in found)))
    names = [event for event in events if event["ph"] == "M"]
    return Watched((*found, rest), [*names, *spans], seconds)


def _operation(name: str, compiled: set[str]) -> str:
    found = OPERATION.match(name)
    word = found[1] if found else NUMBER.sub("", name) if name in compiled else ""
    return "" if word in NO_WORK else word


def _events(path: Path) -> Iterator[dict[str, Any]]:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    for process, plane in enumerate(space.planes):
        for line in plane.lines:
            thread = {"pid": process, "tid": line.id}
            yield {
                "ph": "M",
                "name": "thread_name",
                **thread,
                "args": {"name": line.name or plane.name},
            }
            for event in line.events:
                begin = line.timestamp_ns / 1e3 + event.offset_ps / 1e6
                name = plane.event_metadata[event.metadata_id].name
                yield {
                    "ph": "X",
                    "name": name,
                    "ts": begin,
                    "dur": event.duration_ps / 1e6,
                    **thread,
                }
