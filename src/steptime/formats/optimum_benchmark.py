"""optimum-benchmark: JSON reports, and CSV of sweeps with their settings in columns or in a YAML file beside them."""

from __future__ import annotations

import ast
import re
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._parse import number, parsed, precision, scaled, spelled, table, whole

TITLE = "optimum-benchmark reports"
COLUMN = re.compile(
    r"^(forward|generate|decode|prefill|training)\.(latency|throughput|runtime)\((.+)\)$"
)
# A short report says in words what the full one beside it says in columns.
SHORT = {
    "Forward Latency (s)": "forward.latency(s)", "Forward Throughput (samples/s)": "forward.throughput(samples/s)",
    "Prefill Latency (s)": "forward.latency(s)", "Prefill Throughput (samples/s)": "forward.throughput(samples/s)",
    "Decode Latency (s)": "decode.latency(s)", "Decode Throughput (tokens/s)": "decode.throughput(tokens/s)",
    "Generate Throughput (tokens/s)": "generate.throughput(tokens/s)", "Model": "model", "Batch Size":
    "benchmark.input_shapes.batch_size", "Training Throughput (samples/s)": "training.throughput(samples/s)",
    "Per Process Batch Size": "benchmark.input_shapes.batch_size", "Backend": "backend.name",
    "GPUs": "environment.gpus",
    "Generate Peak Memory (MB)": "generate.peak_memory(MB)", "Forward Peak Memory (MB)": "forward.peak_memory(MB)",
}  # fmt: skip
PHASES = {"training": "training", "forward": "forward", "prefill": "forward"}
MEMORY = ("max_memory_allocated(MB)", "peak_memory(MB)")


def recognises(name: str, head: bytes) -> bool:
    first = head.split(b"\n", 1)[0]
    if head.lstrip()[:1] == b"{":
        return b'"latency"' in head and b'"stdev_"' in head
    columns = (
        b"backend.name" in first
        or b"forward.latency(s)" in first
        or b"training.runtime(s)" in first
    )
    return (
        columns
        or any(word.encode() in first for word in SHORT if "(" in word)
        or b"optimum_benchmark." in head[:2000]
    )


def read(file: Original) -> Found:
    if file.text.lstrip()[:1] == "{":
        yield from _report(file)
    elif file.folders.suffix in (".yaml", ".yml"):
        yield _settings(file)
    elif file.folders.name.startswith("short_") and file.neighbour(
        file.folders.name.replace("short_", "full_")
    ):
        yield Skipped("file", "the same results as the full report beside it")
    else:
        beside = file.neighbour("hydra_config.yaml")
        settings = _flat(beside.text) if beside else {}
        for line, row in table(file.text):
            yield from _row(
                file,
                f"line {line}",
                settings | {SHORT.get(name, name): row[name] for name in row if row[name]},
            )


def _settings(file: Original) -> Row:
    """A sweep writes the settings first: where no results lie beside them the run did not end."""
    if any(file.neighbour(f"{kind}_results.csv") for kind in ("inference", "training")):
        return Skipped("file", "the settings of the results beside it")
    settings = _flat(file.text)
    kind = "training" if settings.get("benchmark.name") == "training" else "generate"
    return file.run(
        "settings",
        _dimensions(settings, kind),
        {},
        failure="settings without results: the run did not end",
    )


def _flat(text: str) -> dict[str, str]:
    """The plain part of YAML: indented names and values. Names are joined by dots, as in the CSV."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"^( *)([\w.+-]+): *(.*?)\s*$", line)
        item = re.match(r"^ *- (.+)$", line)
        if match:
            above = [(depth, name) for depth, name in above if depth < len(match[1])]
            key = ".".join([*(name for _, name in above), match[2]])
            above.append((len(match[1]), match[2]))
            found[key] = "" if match[3] == "null" else match[3].strip("'")
        elif item and above:
            key = ".".join(name for _, name in above)
            found[key] = str(
                [
                    *(ast.literal_eval(found[key]) if found.get(key, "").startswith("[") else []),
                    item[1],
                ]
            )
    return found


def _row(file: Original, place: str, row: dict[str, str]) -> Found:
    phases: dict[str, dict[str, tuple[str, str]]] = {}
    for column, value in row.items():
        if found := COLUMN.match(column):
            phases.setdefault(found[1], {})[found[2]] = (value, found[3])
    for phase, values in phases.items():
        yield _run(file, f"{place}, {phase}", row, (phase, values))
    if not phases:
        failed = "benchmark.name" in row or "backend.name" in row
        dimensions = _dimensions(row, "")
        yield (
            file.run(place, dimensions, {}, failure="no result in the row")
            if failed
            else Skipped(place, "no result")
        )


def _run(
    file: Original, place: str, row: dict[str, str], timed: tuple[str, dict[str, tuple[str, str]]]
) -> Row:
    phase, values = timed
    speed, unit = values.get("throughput", ("", ""))
    memory = next((row[f"{phase}.{name}"] for name in MEMORY if row.get(f"{phase}.{name}")), None)
    dimensions = _dimensions(row, phase) | {"unit": unit.removesuffix("/s")}
    return file.run(
        place,
        dimensions,
        {
            "throughput": number(speed),
            "step_time": number(values["latency"][0]) if phase == "forward" and "latency" in values else None,
            "latency_p50": number(values["latency"][0]) if phase != "forward" and "latency" in values else None,
            "memory": scaled(memory, 1e6),
        },
        failure="" if number(speed) is not None else f"no throughput: {speed!r}",
        more={
            "experiment": row.get("experiment_name"), "task": row.get("task"),
            "cpu": spelled(row.get("environment.cpu")), "new_tokens": whole(row.get("benchmark.new_tokens")),
            "sequence_length": whole(row.get("benchmark.input_shapes.sequence_length")),
            "quantisation": row.get("backend.quantization_scheme"),
        },
    )  # fmt: skip


def _dimensions(row: dict[str, str], phase: str) -> dict[str, Any]:
    devices = _devices(row.get("environment.gpus", ""))
    batch = whole(
        row.get("benchmark.input_shapes.batch_size")
        or row.get("benchmark.training_arguments.per_device_train_batch_size")
    )
    kind = precision(row.get("backend.torch_dtype")) or (
        "fp16" if "fp16" in row.get("experiment_name", "") else ""
    )
    name = row.get("backend.name", "").lower()
    return {
        "model": row.get("model", ""), "phase": PHASES.get(phase, "inference"), "mode": phase, "precision": kind,
        "framework": name, "framework_version": row.get("backend.version", ""), "suite": "optimum-benchmark",
        "device": devices[0] if devices else spelled(row.get("environment.cpu") or row.get("device")),
        "devices": len(devices) or None, "replica_batch": batch,
        "software": f"{name} {row.get('backend.version', '')}".strip(),
    }  # fmt: skip


def _devices(text: str) -> list[str]:
    try:
        found = ast.literal_eval(text) if text.startswith("[") else []
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [spelled(name) for name in found] if isinstance(found, list) else []


def _report(file: Original) -> Found:
    values = parsed(file.text)
    for phase, found in values.items() if isinstance(values, dict) else ():
        latency = found.get("latency") if isinstance(found, dict) else None
        if not isinstance(latency, dict):
            yield Skipped(phase, "no latency")
            continue
        speed = found.get("throughput")
        told = speed if isinstance(speed, dict) else {}
        yield file.run(
            phase,
            {
                "phase": PHASES.get(phase, "inference"), "mode": phase, "suite": "optimum-benchmark",
                "unit": spelled(told.get("unit")).removesuffix("/s"),
            },
            {
                "step_time": number(latency.get("mean")), "throughput": number(told.get("value")),
                **{f"latency_p{share}": number(latency.get(f"p{share}")) for share in (50, 90, 99)},
            },
            more={"count": latency.get("count"), "values": latency.get("values")},
        )  # fmt: skip
