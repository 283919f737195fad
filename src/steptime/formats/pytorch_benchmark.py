"""Records of PyTorch's benchmark database, version 3: one metric of one model each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import as_dict, clean_text, json_objects, number
from steptime.formats._writer import Page, extra_values, read_extras
from steptime.index.catalogue import METRICS

TITLE = "PyTorch benchmark records, version 3"
# The names of metrics in the database: ours, and how many of ours one of theirs is.
KNOWN = {
    "latency": ("step_time", 1.0),
    "latency(s)": ("step_time", 1.0),
    "latency(ms)": ("step_time", 1e-3),
    "avg_inference_latency(ms)": ("step_time", 1e-3),
    "throughput": ("throughput", 1.0),
    "token_per_sec": ("throughput", 1.0),
    "tokens_per_second": ("throughput", 1.0),
    "memory": ("memory", 1.0),
    "peak_inference_mem_usage(mb)": ("memory", 1e6),
    "accuracy": ("accuracy", 1.0),
}
# Metrics that are not written by their own names.
WRITTEN = {"step_time": "latency(s)"}
# Values that a record has fields for.
HELD = ("model", "phase", "mode", "suite", "precision", "device")


def recognises(name: str, head: bytes) -> bool:
    if b'"benchmark_values"' in head and b'"benchmark"' in head:
        return True
    # An array whose first record is empty.
    is_empty = head.lstrip().startswith(b"[{}")
    return is_empty and b'"repo"' in head and b'"workflow_id"' in head


def read(file: Original) -> Rows:
    for location, record in json_objects(file.text):
        yield _read_record(file, location, record)


def _read_record(file: Original, location: str, record: dict[str, Any]) -> Row:
    benchmark = as_dict(record.get("benchmark"))
    model = as_dict(record.get("model"))
    metric = as_dict(record.get("metric"))
    values = _numbers(metric.get("benchmark_values"))
    if not values:
        return Skipped(location, "no values of a metric")
    extra_info = as_dict(benchmark.get("extra_info"))
    extra_dimensions, extra_metrics = read_extras(extra_info)
    runner = _first_runner(record)
    return file.run(
        location,
        {
            "model": clean_text(model.get("name")),
            "phase": clean_text(benchmark.get("mode")),
            "framework": "pytorch",
            "mode": clean_text(model.get("backend")),
            "suite": clean_text(benchmark.get("name")),
            "devices": 1,
            "precision": clean_text(benchmark.get("dtype")),
            "device": clean_text(runner.get("name") or extra_info.get("device")),
            **extra_dimensions,
        },
        _metrics(metric, values, extra_metrics),
        started=clean_text(extra_info.get("started")),
        more={
            "metric": metric.get("name"),
            "values": values,
            "benchmark": extra_info,
            "runner": runner.get("type"),
        },
    )


def _numbers(values: Any) -> list[float]:
    if not isinstance(values, list):
        return []
    numbers = [number(value) for value in values]
    return [value for value in numbers if value is not None]


def _first_runner(record: dict[str, Any]) -> dict[str, Any]:
    runners = record.get("runners")
    return as_dict(runners[0]) if isinstance(runners, list) and runners else {}


def _metrics(
    metric: dict[str, Any], values: list[float], extra_metrics: dict[str, Any]
) -> dict[str, float | None]:
    """Empty if the metric is unknown here."""
    their_name = clean_text(metric.get("name")).lower()
    own_name = their_name if their_name in METRICS else ""
    name, factor = KNOWN.get(their_name, (own_name, 1.0))
    if not name:
        return {}
    metrics: dict[str, float | None] = {name: factor * median(values)}
    ends = as_dict(metric.get("extra_info"))
    for end in ("low", "high"):
        metrics[f"{name}_{end}"] = number(ends.get(end))
    return metrics | extra_metrics


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """A list of records, one for each metric of each row.

    Latency is in seconds; `throughput` is that of all devices, in the unit that `extra_info`
    names. Extra values are texts, because the database's column is a map of texts."""
    records: list[dict[str, Any]] = []
    ids: list[str] = []
    for row in rows:
        names = [name for name in METRICS if row.get(name) is not None]
        if not names:
            yield Skipped(row["id"], "a record is of one metric; this row has none")
        for name in names:
            records.append(_record(row, name))
            ids.append(row["id"])
    if records:
        content = json.dumps(records, indent=1, ensure_ascii=False).encode()
        yield Page("pytorch-v3.json", content, tuple(ids))


def _record(row: dict[str, Any], name: str) -> dict[str, Any]:
    ends = {}
    for end in ("low", "high"):
        value = row.get(f"{name}_{end}")
        if value is not None:
            ends[end] = str(value)
    columns = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    extra_info = {"started": row["started"]} if row.get("started") else {}
    for key, value in extra_values(row, (*HELD, *columns)).items():
        extra_info[key] = str(value)
    return {
        "benchmark": {
            "name": row.get("suite") or "steptime",
            "mode": row.get("phase") or "",
            "dtype": row.get("precision") or "",
            "extra_info": extra_info,
        },
        "model": {"name": row.get("model") or "", "backend": row.get("mode") or ""},
        "metric": {
            "name": WRITTEN.get(name, name),
            "benchmark_values": [row[name]],
            "extra_info": ends,
        },
        "runners": [{"name": row.get("device") or ""}],
    }
