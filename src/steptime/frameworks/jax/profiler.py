"""Steps under JAX's own profiler: the compiled program's instructions by what the program calls them."""

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
from steptime.core.inspection import BETWEEN, IDLE, Account, Operator, Watched, self_operators

ORIGIN = re.compile(r'^\s*(?:ROOT )?%?(\S+) = .*?metadata=\{op_name="([^"]+)"', re.MULTILINE)
NUMBER = re.compile(r"\.\d+$")


def watch(program: Any, steps: int) -> Watched:
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder)
        begin = time.perf_counter()
        for _ in range(steps):
            with jax.profiler.TraceAnnotation("step"):
                program.step()
        seconds = time.perf_counter() - begin
        jax.profiler.stop_trace()
        events = _trace(Path(folder))
    origins = {name: _last(path) for name, path in ORIGIN.findall(_compiled(program).as_text())}
    return seen(events, origins, seconds, device=program.device.platform != "cpu")


def seen(
    events: list[dict[str, Any]], origins: dict[str, str], seconds: float, *, device: bool = False
) -> Watched:
    """`origins`: what the network's program called an instruction, `conv_general_dilated` for `fusion.3`."""
    spans = [event for event in events if event.get("ph") == "X" and event.get("dur")]
    own = [event for event in spans if "hlo_op" in (event.get("args") or {})]
    if not own:
        raise Unsupported("JAX's profiler saw none of the program's instructions.")
    found = self_operators(own, lambda event: _called(event["args"]["hlo_op"], origins))
    # Instructions run on several threads at a time; then they fill more than the steps and nothing lies between.
    rest = max(0.0, seconds - sum(one.seconds for one in found))
    between = Operator(IDLE if device else BETWEEN, 0, rest)
    kept = [
        event for event in events if not event.get("name", "").startswith("$")
    ]  # Python's own calls
    return Watched((*found, between), kept, seconds, "device" if device else "host")


def account(program: Any) -> Account:
    """Activations and workspace are one buffer to XLA, which plans it when it compiles."""
    told = _compiled(program).memory_analysis()
    state = program.state
    held = {
        "weights": _bytes(state.weights), "buffers": _bytes(state.moving.statistics),
        "optimizer state": _bytes(state.rule), "inputs": _bytes(program._batch()),
        "activations, temporaries and workspace": int(told.temp_size_in_bytes),
        "outputs": max(0, int(told.output_size_in_bytes) - int(told.alias_size_in_bytes)),
    }  # fmt: skip
    return Account(held, "XLA plans activations, gradients and workspace as one buffer")


def _bytes(values: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(values) if hasattr(leaf, "nbytes"))


def _compiled(program: Any) -> Any:
    return program.run.lower(*program._arguments()).compile()


def _trace(folder: Path) -> list[dict[str, Any]]:
    path = next(folder.rglob("*.trace.json.gz"), None)
    if path is None:
        raise Unsupported("JAX's profiler left no trace here.")
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


def _called(instruction: str, origins: dict[str, str]) -> str:
    return origins.get(instruction) or NUMBER.sub("", instruction)


def _last(path: str) -> str:
    """`jit(train)/transpose(jvp(f))/dot_general` is a product, wherever it comes from."""
    return path.rstrip("/").rpartition("/")[2].partition("[")[0]
