"""optimum-benchmark: JSON reports, and CSV of sweeps.

The settings of a sweep are in columns, or in a YAML file beside the CSV."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import (
    as_dict,
    clean_text,
    integer,
    number,
    parse_json,
    precision,
    scale,
    table_rows,
)

TITLE = "optimum-benchmark reports"
# forward.latency(s), decode.throughput(tokens/s)
COLUMN = re.compile(
    r"^(forward|generate|decode|prefill|training)\.(latency|throughput|runtime)\((.+)\)$"
)
# The columns of a short report, and those of the full one.
SHORT = {
    "Forward Latency (s)": "forward.latency(s)",
    "Forward Throughput (samples/s)": "forward.throughput(samples/s)",
    "Prefill Latency (s)": "forward.latency(s)",
    "Prefill Throughput (samples/s)": "forward.throughput(samples/s)",
    "Decode Latency (s)": "decode.latency(s)",
    "Decode Throughput (tokens/s)": "decode.throughput(tokens/s)",
    "Generate Throughput (tokens/s)": "generate.throughput(tokens/s)",
    "Model": "model",
    "Batch Size": "benchmark.input_shapes.batch_size",
    "Training Throughput (samples/s)": "training.throughput(samples/s)",
    "Per Process Batch Size": "benchmark.input_shapes.batch_size",
    "Backend": "backend.name",
    "GPUs": "environment.gpus",
    "Generate Peak Memory (MB)": "generate.peak_memory(MB)",
    "Forward Peak Memory (MB)": "forward.peak_memory(MB)",
}
# Columns that no other format has.
MARKS = (b"backend.name", b"forward.latency(s)", b"training.runtime(s)")
PHASES = {"training": "training", "forward": "forward", "prefill": "forward"}
# Either column may hold the peak of a phase.
MEMORY = ("max_memory_allocated(MB)", "peak_memory(MB)")
# Inference and training name the batch differently.
BATCHES = (
    "benchmark.input_shapes.batch_size",
    "benchmark.training_arguments.per_device_train_batch_size",
)


class Value(NamedTuple):
    text: str = ""
    unit: str = ""


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"{":
        return b'"latency"' in head and b'"stdev_"' in head
    first_line = head.split(b"\n", 1)[0]
    short_marks = [name.encode() for name in SHORT if "(" in name]
    if any(mark in first_line for mark in (*MARKS, *short_marks)):
        return True
    return b"optimum_benchmark." in head[:2000]


def read(file: Original) -> Rows:
    name = file.folders.name
    if file.text.lstrip()[:1] == "{":
        yield from _read_report(file)
    elif file.folders.suffix in (".yaml", ".yml"):
        yield _read_settings(file)
    elif name.startswith("short_") and file.neighbour(name.replace("short_", "full_")):
        yield Skipped("file", "the same results as the full report beside it")
    else:
        neighbour = file.neighbour("hydra_config.yaml")
        settings = _flatten_yaml(neighbour.text) if neighbour else {}
        for line, cells in table_rows(file.text):
            row = dict(settings)
            for column, cell in cells.items():
                if cell:
                    row[SHORT.get(column, column)] = cell
            yield from _read_row(file, f"line {line}", row)


def _read_settings(file: Original) -> Row:
    """A sweep writes the settings first: without results beside them the run did not end."""
    if any(file.neighbour(f"{kind}_results.csv") for kind in ("inference", "training")):
        return Skipped("file", "the settings of the results beside it")
    settings = _flatten_yaml(file.text)
    phase = "training" if settings.get("benchmark.name") == "training" else "generate"
    failure = "settings without results: the run did not end"
    return file.run("settings", _dimensions(settings, phase), {}, failure=failure)


def _flatten_yaml(text: str) -> dict[str, str]:
    """Plain YAML: indented names and values. Names are joined by dots, as in the CSV."""
    values: dict[str, str] = {}
    # The names above the current line, with their indentation.
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"^( *)([\w.+-]+): *(.*?)\s*$", line)
        item = re.match(r"^ *- (.+)$", line)
        if match:
            indent, name, value = match.groups()
            above = [entry for entry in above if entry[0] < len(indent)]
            above.append((len(indent), name))
            values[_join_names(above)] = "" if value == "null" else value.strip("'")
        elif item and above:
            key = _join_names(above)
            items = []
            if values.get(key, "").startswith("["):
                items = ast.literal_eval(values[key])
            values[key] = str([*items, item[1]])
    return values


def _join_names(above: list[tuple[int, str]]) -> str:
    return ".".join(name for _, name in above)


def _read_row(file: Original, location: str, row: dict[str, str]) -> Rows:
    phases: dict[str, dict[str, Value]] = {}
    for column, cell in row.items():
        if match := COLUMN.match(column):
            phase, quantity, unit = match.groups()
            phases.setdefault(phase, {})[quantity] = Value(cell, unit)
    for phase, values in phases.items():
        yield _read_phase(file, f"{location}, {phase}", row, phase, values)
    if phases:
        return
    if "benchmark.name" in row or "backend.name" in row:
        yield file.run(location, _dimensions(row, ""), {}, failure="no result in the row")
    else:
        yield Skipped(location, "no result")


def _read_phase(
    file: Original, location: str, row: dict[str, str], phase: str, values: dict[str, Value]
) -> Row:
    speed = values.get("throughput", Value())
    memory = [row[f"{phase}.{name}"] for name in MEMORY if row.get(f"{phase}.{name}")]
    dimensions = _dimensions(row, phase)
    dimensions["unit"] = speed.unit.removesuffix("/s")
    metrics = {
        "throughput": number(speed.text),
        "memory": scale(memory[0], 1e6) if memory else None,
    }
    if "latency" in values:
        # A forward pass is one step; the others report the median of many.
        name = "step_time" if phase == "forward" else "latency_p50"
        metrics[name] = number(values["latency"].text)
    failure = ""
    if number(speed.text) is None:
        failure = f"no throughput: {speed.text!r}"
    return file.run(
        location,
        dimensions,
        metrics,
        failure=failure,
        more={
            "experiment": row.get("experiment_name"),
            "task": row.get("task"),
            "cpu": clean_text(row.get("environment.cpu")),
            "new_tokens": integer(row.get("benchmark.new_tokens")),
            "sequence_length": integer(row.get("benchmark.input_shapes.sequence_length")),
            "quantisation": row.get("backend.quantization_scheme"),
        },
    )


def _dimensions(row: dict[str, str], phase: str) -> dict[str, Any]:
    gpus = _gpu_names(row.get("environment.gpus", ""))
    cpu = clean_text(row.get("environment.cpu") or row.get("device"))
    backend = row.get("backend.name", "").lower()
    release = row.get("backend.version", "")
    batch = row.get(BATCHES[0]) or row.get(BATCHES[1])
    return {
        "model": row.get("model", ""),
        "phase": PHASES.get(phase, "inference"),
        "mode": phase,
        "precision": _precision(row),
        "framework": backend,
        "framework_version": release,
        "suite": "optimum-benchmark",
        "device": gpus[0] if gpus else cpu,
        "devices": len(gpus) or None,
        "replica_batch": integer(batch),
        "software": f"{backend} {release}".strip(),
    }


def _precision(row: dict[str, str]) -> str:
    stated = precision(row.get("backend.torch_dtype"))
    if stated:
        return stated
    return "fp16" if "fp16" in row.get("experiment_name", "") else ""


def _gpu_names(text: str) -> list[str]:
    """From the text of a Python list."""
    try:
        names = ast.literal_eval(text) if text.startswith("[") else []
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [clean_text(name) for name in names] if isinstance(names, list) else []


def _read_report(file: Original) -> Rows:
    for phase, values in as_dict(parse_json(file.text)).items():
        latency = as_dict(values).get("latency")
        if not isinstance(latency, dict):
            yield Skipped(phase, "no latency")
            continue
        speed = as_dict(values.get("throughput"))
        metrics = {
            "step_time": number(latency.get("mean")),
            "throughput": number(speed.get("value")),
        }
        for percent in (50, 90, 99):
            metrics[f"latency_p{percent}"] = number(latency.get(f"p{percent}"))
        yield file.run(
            phase,
            {
                "phase": PHASES.get(phase, "inference"),
                "mode": phase,
                "suite": "optimum-benchmark",
                "unit": clean_text(speed.get("unit")).removesuffix("/s"),
            },
            metrics,
            more={"count": latency.get("count"), "values": latency.get("values")},
        )
