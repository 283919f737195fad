"""Steps under ONNX Runtime's own profiler, in a session of its own: profiling is chosen when a session is made."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from steptime.core.case import Case
from steptime.core.inspection import BETWEEN, Operator, StepProfile
from steptime.frameworks.onnxruntime import settings

WARM_UP_STEPS = 3
STEP, KERNEL = "model_run", "_kernel_time"


def watch(model: bytes, case: Case, feed: dict[str, Any], steps: int) -> StepProfile:
    with tempfile.TemporaryDirectory() as folder:
        options = settings.options(case)
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/watched"
        session = settings.session(model, case, options)
        for _ in range(WARM_UP_STEPS + steps):
            session.run(None, feed)
        events = json.loads(Path(session.end_profiling()).read_text())
    return seen(events, steps)


def seen(events: list[dict[str, Any]], steps: int) -> StepProfile:
    """The last steps of a trace. Kernels run one behind the other, so what they leave of a step is between them."""
    runs = [event for event in events if event["name"] == STEP][-steps:]
    kept = [event for event in events if event["ph"] == "X" and event["ts"] >= runs[0]["ts"]]
    calls, times = dict[str, int](), dict[str, float]()
    for event in kept:
        if event["name"].endswith(KERNEL):
            name = event["args"]["op_name"]
            calls[name], times[name] = (
                calls.get(name, 0) + 1,
                times.get(name, 0.0) + event["dur"] / 1e6,
            )
    seconds = sum(event["dur"] for event in runs) / 1e6
    rest = Operator(BETWEEN, 0, max(0.0, seconds - sum(times.values())))
    return StepProfile(
        (*(Operator(name, calls[name], times[name]) for name in times), rest), kept, seconds
    )
