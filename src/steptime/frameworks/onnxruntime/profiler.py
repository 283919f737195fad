"""Steps under ONNX Runtime's profiler, in a separate session: profiling is an option of the
session."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from steptime.core.case import Case
from steptime.core.inspection import BETWEEN, Operator, StepProfile
from steptime.frameworks.onnxruntime import settings

WARM_UP_STEPS = 3
# The names of events: a step, and the end of the name of a kernel.
STEP = "model_run"
KERNEL = "_kernel_time"
Event = dict[str, Any]  # of Chrome's trace format


def profile_steps(model: bytes, case: Case, feed: dict[str, Any], steps: int) -> StepProfile:
    return summarize(record_trace(model, case, feed, WARM_UP_STEPS + steps), steps)


def record_trace(model: bytes, case: Case, feed: dict[str, Any], steps: int) -> list[Event]:
    with tempfile.TemporaryDirectory() as folder:
        options = settings.session_options(case)
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/trace"
        session = settings.open_session(model, case, options)
        for _ in range(steps):
            session.run(None, feed)
        events: list[Event] = json.loads(Path(session.end_profiling()).read_text())
    return events


def summarize(events: list[Event], steps: int) -> StepProfile:
    """The last steps of a trace."""
    runs = [event for event in events if event["name"] == STEP][-steps:]
    begin = runs[0]["ts"]
    spans = [event for event in events if event["ph"] == "X" and event["ts"] >= begin]
    calls: dict[str, int] = {}
    times: dict[str, float] = {}
    for event in spans:
        if event["name"].endswith(KERNEL):
            name = event["args"]["op_name"]
            calls[name] = calls.get(name, 0) + 1
            times[name] = times.get(name, 0.0) + event["dur"] / 1e6
    operators = [Operator(name, calls[name], times[name]) for name in times]
    seconds = sum(event["dur"] for event in runs) / 1e6
    # Kernels run one after the other, so the rest of a step is the time between them.
    operators.append(Operator(BETWEEN, 0, max(0.0, seconds - sum(times.values()))))
    return StepProfile(tuple(operators), spans, seconds)
