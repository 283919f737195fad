"""TorchBench's JSON: runs, metrics of user benchmarks, scores."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import (
    as_dict,
    clean_text,
    first_match,
    integer,
    number,
    parse_json,
    precision,
    ratio,
    scale,
)

TITLE = "TorchBench JSON"
PHASES = {"eval": "inference", "train": "training"}
# Our metric, and how many of ours one of theirs is.
METRICS = {
    "latencies": ("step_time", 1e-3),
    "gpu_peak_mem": ("memory", 2.0**30),
    "cpu_peak_mem": ("memory", 2.0**30),
}


def recognises(name: str, head: bytes) -> bool:
    runs = b'"extra_args"' in head and b'"results"' in head and b'"test"' in head
    scores = b'"pytorch_version"' in head and b'"score"' in head
    return runs or scores or (b'"metrics"' in head and b'"pytorch_git_version"' in head)


def read(file: Original) -> Rows:
    document = parse_json(file.text)
    if document is None:
        yield Skipped("file", "no JSON")
    elif isinstance(document, dict):
        yield from _read_metrics(file, document)
    elif isinstance(document, list):
        for number_of_entry, entry in enumerate(document, 1):
            location = f"entry {number_of_entry}"
            if not isinstance(entry, dict):
                continue
            if isinstance(entry.get("score"), dict):
                yield from _read_scores(file, location, entry)
            else:
                yield _read_run(file, location, entry)


def _dimensions(model: Any, test: Any, device: Any) -> dict[str, Any]:
    phase = clean_text(test)
    return {
        "model": clean_text(model),
        "phase": PHASES.get(phase, phase),
        "framework": "pytorch",
        "device": clean_text(device),
        "devices": 1,
        "suite": "TorchBench",
    }


def _read_run(file: Original, location: str, entry: dict[str, Any]) -> Row:
    batch = integer(entry.get("batch_size"))
    seconds = scale(as_dict(entry.get("results")).get("latency_ms"), 1e-3)
    dimensions = _dimensions(entry.get("name"), entry.get("test"), entry.get("device"))
    dimensions["effective_batch"] = batch
    dimensions["replica_batch"] = batch
    dimensions["precision"] = precision(entry.get("precision"))
    dimensions["unit"] = "samples"
    failure = ""
    if seconds is None:
        failure = f"status {clean_text(entry.get('status')) or 'unknown'}"
    return file.run(
        location,
        dimensions,
        {"step_time": seconds, "throughput": ratio(batch, seconds)},
        failure=failure,
        more={"extra_args": entry.get("extra_args")},
    )


def _read_metrics(file: Original, document: dict[str, Any]) -> Rows:
    """All metrics of one configuration are one run.

    model=yolov3, test=eval, device=cuda, bs=None, extra_args=--precision bf16 …,
    metric=latencies"""
    environment = as_dict(document.get("environ"))
    runs: dict[str, dict[str, Any]] = {}
    for key, value in as_dict(document.get("metrics")).items():
        configuration, _, metric = str(key).rpartition(", metric=")
        runs.setdefault(configuration, {})[metric] = value
    for configuration, metrics in runs.items():
        settings = dict(re.findall(r"(\w+)=(.*?)(?=, \w+=|$)", configuration))
        if "model" in settings:
            settings["device"] = environment.get("device") or settings.get("device")
            settings["version"] = environment.get("pytorch_version")
            yield _read_configuration(file, configuration, settings, metrics)
        else:
            yield Skipped(configuration or "metrics", "names no model")


def _read_configuration(
    file: Original, location: str, settings: dict[str, Any], metrics: dict[str, Any]
) -> Row:
    numbers: dict[str, float | None] = {}
    for metric, value in metrics.items():
        if metric in METRICS:
            name, factor = METRICS[metric]
            numbers[name] = scale(value, factor)
    failure = ""
    if numbers.get("step_time") is None:
        texts = sorted({value for value in metrics.values() if isinstance(value, str)})
        failure = ", ".join(texts) or "no latency"
    options = settings.get("extra_args", "")
    batch = integer(settings.get("bs"))
    quantisation = first_match(r"--quantization (\w+)", options)
    dimensions = _dimensions(settings["model"], settings.get("test"), settings["device"])
    dimensions["framework_version"] = settings["version"]
    dimensions["effective_batch"] = batch
    dimensions["replica_batch"] = batch
    dimensions["precision"] = quantisation or first_match(r"--precision (\w+)", options)
    dimensions["mode"] = "compiled" if re.search(r"--torchdynamo (\w+)", options) else "eager"
    return file.run(location, dimensions, numbers, failure=failure, more={"extra_args": options})


def _read_scores(file: Original, location: str, entry: dict[str, Any]) -> Rows:
    score = entry["score"]
    scores = {"total": score.get("total"), **as_dict(score.get("domain"))}
    for name, value in scores.items():
        if number(value) is None:
            yield Skipped(f"{location}, {name}", f"no score: {value!r}")
            continue
        yield file.run(
            f"{location}, {name}",
            {
                "model": name,
                "framework": "pytorch",
                "suite": "TorchBench",
                "framework_version": entry.get("pytorch_version"),
            },
            {"score": number(value)},
        )
