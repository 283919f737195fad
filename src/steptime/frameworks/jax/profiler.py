"""Steps under JAX's profiler: the instructions of the compiled program, named after its source."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import jax

from steptime.core.errors import Unsupported
from steptime.core.inspection import (
    BETWEEN,
    IDLE,
    Operator,
    StepProfile,
    self_operators,
)
from steptime.core.program import Program

ORIGIN = re.compile(r'^\s*(?:ROOT )?%?(\S+) = .*?metadata=\{op_name="([^"]+)"', re.MULTILINE)
NUMBER = re.compile(r"\.\d+$")
Event = dict[str, Any]  # of Chrome's trace format


def profile_steps(program: Program, compiled: Any, steps: int, *, device: bool) -> StepProfile:
    """`compiled`: what the steps run, as XLA compiled it."""
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder)
        begin = time.perf_counter()
        for _ in range(steps):
            with jax.profiler.TraceAnnotation("step"):
                program.step()
        seconds = time.perf_counter() - begin
        jax.profiler.stop_trace()
        events = _read_trace(Path(folder))
    origins = {name: _operation(path) for name, path in ORIGIN.findall(compiled.as_text())}
    return summarize(events, origins, seconds, device=device)


def summarize(
    events: list[Event], origins: dict[str, str], seconds: float, *, device: bool = False
) -> StepProfile:
    """`origins`: the operation that an instruction comes from, `conv_general_dilated` for
    `fusion.3`."""
    spans = [event for event in events if event.get("ph") == "X" and event.get("dur")]
    instructions = [span for span in spans if "hlo_op" in (span.get("args") or {})]
    if not instructions:
        raise Unsupported("JAX's profiler saw none of the program's instructions.")
    operators = self_operators(
        instructions, lambda event: _instruction_name(event["args"]["hlo_op"], origins)
    )
    # Instructions may run on several threads at once. Their sum then exceeds the time of the steps,
    # and nothing is left between them.
    rest = max(0.0, seconds - sum(operator.seconds for operator in operators))
    between = Operator(IDLE if device else BETWEEN, 0, rest)
    # Names that begin with $ are calls of Python functions.
    shown = [event for event in events if not event.get("name", "").startswith("$")]
    return StepProfile((*operators, between), shown, seconds, "device" if device else "host")


def _read_trace(folder: Path) -> list[Event]:
    path = next(folder.rglob("*.trace.json.gz"), None)
    if path is None:
        raise Unsupported("JAX's profiler wrote no trace.")
    events: list[Event] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


def _instruction_name(instruction: str, origins: dict[str, str]) -> str:
    return origins.get(instruction) or NUMBER.sub("", instruction)


def _operation(path: str) -> str:
    """`dot_general` of `jit(train)/transpose(jvp(f))/dot_general`."""
    return path.rstrip("/").rpartition("/")[2].partition("[")[0]
