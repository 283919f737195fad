"""TorchBench's JSON: runs, metrics of user benchmarks, scores."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._parse import number, parsed, precision, scaled, spelled, whole

TITLE = "TorchBench JSON"
# model=yolov3, test=eval, device=cuda, bs=None, extra_args=--precision bf16 …, metric=latencies
PHASES = {"eval": "inference", "train": "training"}
METRICS = {
    "latencies": ("step_time", 1e-3),
    "gpu_peak_mem": ("memory", 2.0**30),
    "cpu_peak_mem": ("memory", 2.0**30),
}


def recognises(name: str, head: bytes) -> bool:
    runs = b'"extra_args"' in head and b'"results"' in head and b'"test"' in head
    scores = b'"pytorch_version"' in head and b'"score"' in head
    return runs or scores or (b'"metrics"' in head and b'"pytorch_git_version"' in head)


def read(file: Original) -> Found:
    values = parsed(file.text)
    if isinstance(values, dict):
        yield from _metrics(file, values)
    for i, entry in enumerate(values if isinstance(values, list) else [], 1):
        if isinstance(entry, dict) and isinstance(entry.get("score"), dict):
            yield from _scores(file, f"entry {i}", entry)
        elif isinstance(entry, dict):
            yield _run(file, f"entry {i}", entry)
    if values is None:
        yield Skipped("file", "no JSON")


def _dimensions(model: Any, test: Any, device: Any) -> dict[str, Any]:
    return {
        "model": spelled(model), "phase": PHASES.get(spelled(test), spelled(test)), "framework": "pytorch",
        "device": spelled(device), "devices": 1, "suite": "TorchBench",
    }  # fmt: skip


def _run(file: Original, place: str, entry: dict[str, Any]) -> Row:
    batch, results = whole(entry.get("batch_size")), entry.get("results")
    seconds = scaled(results.get("latency_ms"), 1e-3) if isinstance(results, dict) else None
    return file.run(
        place,
        {
            **_dimensions(entry.get("name"), entry.get("test"), entry.get("device")), "effective_batch": batch,
            "replica_batch": batch, "precision": precision(entry.get("precision")), "unit": "samples",
        },
        {"step_time": seconds, "throughput": batch / seconds if batch and seconds else None},
        failure="" if seconds is not None else f"status {spelled(entry.get('status')) or 'not told'}",
        more={"extra_args": entry.get("extra_args")},
    )  # fmt: skip


def _metrics(file: Original, values: dict[str, Any]) -> Found:
    """The metrics of one configuration are one run."""
    about = values.get("environ")
    environ = about if isinstance(about, dict) else {}
    metrics = values.get("metrics")
    runs: dict[str, dict[str, Any]] = {}
    for key, value in metrics.items() if isinstance(metrics, dict) else ():
        configuration, _, metric = str(key).rpartition(", metric=")
        runs.setdefault(configuration, {})[metric] = value
    for configuration, found in runs.items():
        told = dict(re.findall(r"(\w+)=(.*?)(?=, \w+=|$)", configuration))
        if "model" not in told:
            yield Skipped(configuration or "metrics", "names no model")
            continue
        yield _configuration(file, configuration, told, found | {"": environ})


def _configuration(file: Original, place: str, told: dict[str, str], found: dict[str, Any]) -> Row:
    environ = found.pop("")
    numbers = {
        METRICS[name][0]: scaled(found[name], METRICS[name][1]) for name in found if name in METRICS
    }
    words = sorted({value for value in found.values() if isinstance(value, str)})
    options, batch = told.get("extra_args", ""), whole(told.get("bs"))
    chosen = re.search(r"--precision (\w+)", options)
    backend = re.search(r"--torchdynamo (\w+)", options)
    quantised = re.search(r"--quantization (\w+)", options)
    return file.run(
        place,
        {
            **_dimensions(told["model"], told.get("test"), environ.get("device") or told.get("device")),
            "framework_version": environ.get("pytorch_version"), "effective_batch": batch, "replica_batch": batch,
            "precision": quantised[1] if quantised else chosen[1] if chosen else "",
            "mode": "compiled" if backend else "eager",
        },
        numbers,
        failure="" if numbers.get("step_time") is not None else ", ".join(words) or "no latency",
        more={"extra_args": options},
    )  # fmt: skip


def _scores(file: Original, place: str, entry: dict[str, Any]) -> Found:
    score = entry["score"]
    domains = score.get("domain") if isinstance(score.get("domain"), dict) else {}
    for name, value in {"total": score.get("total"), **domains}.items():
        if number(value) is None:
            yield Skipped(f"{place}, {name}", f"no score: {value!r}")
            continue
        yield file.run(
            f"{place}, {name}",
            {
                "model": name,
                "framework": "pytorch",
                "suite": "TorchBench",
                "framework_version": entry.get("pytorch_version"),
            },
            {"score": number(value)},
        )
